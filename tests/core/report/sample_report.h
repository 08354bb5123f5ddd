// A database with every kind of result: ok runs, a retried one, OOM, FAIL, a non-finite figure.
#pragma once

#include "core/evidence/settle.h"
#include "tests/core/store/sample_study.h"

namespace assay::report {

/// bf16: two ok runs, the second on its second attempt. float8: one ok, one FAIL. float8-tp2: OOM
/// and one that waits.
class SampleReport {
 public:
  SampleReport() {
    run("bf16", 0, "ok", {}, 1.0);
    run("float8", 0, "ok", {}, 0.9);
    run("float8-tp2", 0, "oom", "out of memory in backward, step 1, rank 0: 7.9 GiB used of 8.0");
    run("bf16", 1, "infra", "no space left on device");
    sample_.store.requeue_run(last_run_);
    run("bf16", 1, "ok", {}, 1.02);
    run("float8", 1, "fail", "optim/lion: the plugin threw | \"bad\" <value>");
  }
  const std::filesystem::path& file() const { return file_; }
  store::SampleStore& sample() { return sample_; }

 private:
  void run(const std::string& slug, int64_t slot, const std::string& state, store::Text reason,
           std::optional<double> factor = {}) {
    for (const auto& queued : sample_.store.queued(sample_.study_id, store::kMachine)) {
      if (queued.slug != slug || queued.slot != slot) continue;
      const store::Claim claim = sample_.claim(queued.run_id).value();
      last_run_ = queued.run_id;
      if (factor) {
        sample_.store.import_rows(claim.attempt_id, 0, "spool",
                                  store::spool_rows(claim.attempt_id, 0, *factor), 1000);
        evidence::settle(sample_.store, claim.attempt_id);
        const store::Metric odd{
            .name = "odd_ratio", .value = std::nan(""), .unit = "1", .formula_id = "odd.v1"};
        if (slug == "float8") sample_.store.put_metrics(claim.attempt_id, {&odd, 1});
      }
      sample_.store.finish_attempt(claim.attempt_id, {.state = state, .reason = reason});
    }
  }

  store::TempFolder folder_;
  std::filesystem::path file_ = folder_ / "assay.db";
  store::SampleStore sample_{file_};
  int64_t last_run_ = 0;
};

}  // namespace assay::report
