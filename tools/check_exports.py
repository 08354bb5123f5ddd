"""Do TensorBoard and MLflow read what `assay report` wrote for them, value for value?

usage: check_exports.py FOLDER STUDY DATABASE
FOLDER holds STUDY.json, tensorboard/ and mlruns/ of one call of `assay report`.
Exit code: 0 every value agrees, 1 one does not, or nothing was compared.
"""

import json
import os
import pathlib
import sqlite3
import struct
import sys

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # MLflow 3 otherwise only migrates file stores

from mlflow.tracking import MlflowClient  # noqa: E402
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer  # noqa: E402

LOSSES = """SELECT t.step, t.loss FROM steps t WHERE t.rank=0 AND t.kind<>'eval' AND t.loss IS NOT NULL
 AND t.attempt_id=(SELECT max(attempt_id) FROM attempts WHERE run_id=?) ORDER BY t.step"""


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


class Check:
    def __init__(self):
        self.compared = 0
        self.wrong = []

    def equal(self, what, expected, found):
        self.compared += 1
        if expected != found:
            self.wrong.append(f"{what}: the report says {expected!r}, read back {found!r}")


def expected_runs(folder, study, database):
    """run_id -> (figures by name, [(step, loss)]) as the JSON report and the database say."""
    runs = json.loads((folder / f"{study}.json").read_text())["runs"]
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        return {
            run["run_id"]: (
                {n: m["value"] for n, m in run["metrics"].items() if m["value"] is not None},
                connection.execute(LOSSES, (run["run_id"],)).fetchall(),
            )
            for run in runs
        }


def check_tensorboard(folder, runs, check):
    events = EventMultiplexer(size_guidance={"scalars": 0}).AddRunsFromDirectory(str(folder))
    events.Reload()
    seen = {int(name.rsplit("run", 1)[1]): name for name in events.Runs()}
    check.equal("tensorboard, runs with steps", {i for i, r in runs.items() if r[1]}, set(seen))
    for run_id, name in seen.items():
        figures, losses = runs[run_id]
        for metric, value in figures.items():
            found = [e.value for e in events.Scalars(name, f"figure/{metric}")]
            check.equal(f"tensorboard, run {run_id}, {metric}", [float32(value)], found)
        found = [(e.step, e.value) for e in events.Scalars(name, "train/loss")]
        expected = [(step, float32(loss)) for step, loss in losses]
        check.equal(f"tensorboard, run {run_id}, losses", expected, found)


def mlflow_name(metric):
    return "".join(c if c.isascii() and c.isalnum() or c in "_-. :/" else "_" for c in metric)


def check_mlflow(folder, study, runs, check):
    client = MlflowClient(folder.resolve().as_uri())
    experiments = client.search_experiments()
    check.equal("mlflow, experiments", [study], [e.name for e in experiments])
    found = client.search_runs([e.experiment_id for e in experiments], max_results=50_000)
    by_id = {int(run.data.tags["assay.run_id"]): run for run in found}
    check.equal("mlflow, runs", set(runs), set(by_id))
    for run_id, run in by_id.items():
        figures, losses = runs[run_id]
        for metric, value in figures.items():
            read = run.data.metrics.get(mlflow_name(metric))
            check.equal(f"mlflow, run {run_id}, {metric}", value, read)
        history = client.get_metric_history(run.info.run_id, "loss") if losses else []
        read = [(m.step, m.value) for m in history]
        check.equal(f"mlflow, run {run_id}, losses", losses, read)


def main(folder, study, database):
    folder = pathlib.Path(folder)
    check = Check()
    runs = expected_runs(folder, study, database)
    check_tensorboard(folder / "tensorboard", runs, check)
    check_mlflow(folder / "mlruns", study, runs, check)
    for line in check.wrong[:20]:
        print(line)
    print(f"{check.compared - len(check.wrong)} of {check.compared} comparisons agree, {len(runs)} runs")
    return 1 if check.wrong or not runs else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
