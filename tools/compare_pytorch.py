#!/usr/bin/env python3
"""Training throughput of assay against PyTorch, eager and compiled, in interleaved rounds.

    tools/compare_pytorch.py [--flavours tiny,small] [--precisions fp32,bf16] [--rounds 5] [--steps 30]

Needs a Python that imports torch (the version assay is built on, with its dependencies) and a built
assay. Each round runs every arm once, in alternating order, in a process of its own: the same
Llama, batch, optimizer, clipping and data shape. An arm's figure is the median step time of the
second half of its steps; the ratios printed are medians over rounds of the ratio within a round.
Exits 0 whatever the figures are; 2 if an arm cannot run.
"""
import argparse
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAVOURS = {  # recipes.md 1.1: hidden, layers, heads, kv heads, ffn
    "tiny": (128, 4, 4, 2, 384),
    "small": (256, 6, 8, 4, 768),
    "medium": (512, 8, 8, 4, 1536),
}
VOCABULARY, SEQUENCE, BATCH = 272, 256, 8


def llama(flavour):
    """The Llama of assay's models/llama3: RMSNorm, rotary halves, grouped queries, SwiGLU."""
    import torch
    from torch import nn
    import torch.nn.functional as F

    hidden, layers, heads, kv_heads, ffn = FLAVOURS[flavour]
    head_dim = hidden // heads
    frequencies = 500000.0 ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angles = torch.outer(torch.arange(SEQUENCE, dtype=torch.float64), frequencies)
    cos = torch.cat([angles, angles], -1).cos().float()[:, None]
    sin = torch.cat([angles, angles], -1).sin().float()[:, None]

    def rope(x):
        first, second = x.chunk(2, -1)
        return (x * cos + torch.cat([-second, first], -1) * sin).to(x.dtype)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            kv = kv_heads * head_dim
            self.norm1, self.norm2 = nn.RMSNorm(hidden, 1e-5), nn.RMSNorm(hidden, 1e-5)
            self.q = nn.Linear(hidden, hidden, bias=False)
            self.k, self.v = nn.Linear(hidden, kv, bias=False), nn.Linear(hidden, kv, bias=False)
            self.o = nn.Linear(hidden, hidden, bias=False)
            self.gate = nn.Linear(hidden, ffn, bias=False)
            self.up = nn.Linear(hidden, ffn, bias=False)
            self.down = nn.Linear(ffn, hidden, bias=False)

        def forward(self, x):
            n = self.norm1(x)
            q, k, v = (w(n).view(BATCH, SEQUENCE, -1, head_dim) for w in (self.q, self.k, self.v))
            q, k = rope(q), rope(k)
            out = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2),
                                                 v.transpose(1, 2), is_causal=True, enable_gqa=True)
            x = x + self.o(out.transpose(1, 2).reshape(BATCH, SEQUENCE, hidden))
            n = self.norm2(x)
            return x + self.down(F.silu(self.gate(n)) * self.up(n))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, hidden)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))
            self.norm = nn.RMSNorm(hidden, 1e-5)
            self.head = nn.Linear(hidden, VOCABULARY, bias=False)

        def forward(self, ids, labels):
            x = self.embedding(ids)
            for layer in self.layers:
                x = layer(x)
            logits = self.head(self.norm(x)).float()
            return F.cross_entropy(logits.view(-1, VOCABULARY), labels.view(-1))

    return Llama()


def run_torch(arm, flavour, precision, steps, threads):
    """Prints the step times in seconds; runs in a process of its own."""
    import time
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = llama(flavour)
    call = torch.compile(model) if arm == "compiled" else model
    optimizer = torch.optim.AdamW(model.parameters(), 8e-4, (0.9, 0.95), 1e-8, 0.1, fused=True)
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        tokens = torch.randint(0, 256, (BATCH, SEQUENCE + 1))
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = call(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - start)
    print(json.dumps(times))


def run_assay(arm, flavour, precision, steps, threads, assay, folder):
    study = folder / "study.yaml"
    study.write_text(f"""assay: 1
study: throughput
base:
  model: {{name: llama3, flavour: {flavour}, seq_len: {SEQUENCE}}}
  data: {{name: synthetic}}
  precision: {precision}
  compile: {arm}
  train: {{steps: {steps}, global_batch: {BATCH}, threads_per_rank: {threads}, eval_batches: 1}}
""")
    database = folder / "throughput.db"
    database.unlink(missing_ok=True)
    subprocess.run([assay, "--db", database, "run", study], check=True, cwd=folder,
                   stdout=subprocess.DEVNULL)
    with sqlite3.connect(database) as connection:
        rows = connection.execute("SELECT wall_s FROM steps WHERE rank = 0 AND kind <> 'eval' ORDER BY step")
        return [row[0] for row in rows]


def measure(arm, options, flavour, precision, folder):
    owner, kind = arm.split(" ")
    if owner == "assay":
        times = run_assay(kind, flavour, precision, options.steps, options.threads, options.assay, folder)
    else:
        command = [sys.executable, __file__, "--torch-arm", kind, "--flavours", flavour, "--precisions",
                   precision, "--steps", str(options.steps), "--threads", str(options.threads)]
        times = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return statistics.median(times[len(times) // 2:])


def compare(options, flavour, precision, folder):
    arms = options.arms.split(",")
    rounds = []
    for index in range(options.rounds):
        order = arms if index % 2 == 0 else arms[::-1]
        rounds.append({arm: measure(arm, options, flavour, precision, folder) for arm in order})
    fastest = "assay fused"
    for arm in arms:
        seconds = statistics.median(r[arm] for r in rounds)
        ratio = statistics.median(r[arm] / r[fastest] for r in rounds)
        print(f"{flavour:7} {precision:5} {arm:15} {seconds * 1e3:9.1f} ms a step "
              f"{BATCH * SEQUENCE / seconds:9.0f} tokens/s   {fastest} is {ratio:5.2f} x", flush=True)
    for arm, target in (("torch eager", 1.3), ("torch compiled", 1.0)):
        if arm in arms:
            ratio = statistics.median(r[arm] / r[fastest] for r in rounds)
            print(f"TARGET|throughput, {flavour}, {precision}, over {arm}|>= {target} x|{ratio:.2f} x|"
                  f"{'yes' if ratio >= target else 'no'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flavours", default="tiny,small,medium")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--arms", default="assay fused,assay eager,torch eager,torch compiled")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--assay", default=str(ROOT / "build/release/bin/assay"))
    parser.add_argument("--torch-arm", choices=["eager", "compiled"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch_arm:
        return run_torch(options.torch_arm, options.flavours, options.precisions, options.steps, options.threads)
    with tempfile.TemporaryDirectory() as folder:
        for flavour in options.flavours.split(","):
            for precision in options.precisions.split(","):
                try:
                    compare(options, flavour, precision, pathlib.Path(folder))
                except subprocess.CalledProcessError as error:
                    print(error, (error.stderr or "")[-2000:], file=sys.stderr)
                    return 2
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    sys.exit(main())
