// fake_worker: speaks the protocol of assay-worker and pretends to train.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <thread>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/base/files.h"
#include "core/base/spool.h"
#include "core/base/worker_protocol.h"
#include "core/worker/confine.h"
#include "core/worker/events.h"
#include "core/worker/guard.h"
#include "core/worker/template.h"
#include "tests/fake_worker/faults.h"

namespace assay::fake {
namespace {

using nlohmann::json;

constexpr int64_t kFakeBytes = int64_t{100} << 20;

json step_row(const json& config, int64_t step, double loss) {
  const double wall_s = config.value("fake", json::object()).value("wall_s", 0.001);
  const int64_t tokens = config.at("train").at("global_batch").get<int64_t>() *
                         config.at("model").at("seq_len").get<int64_t>();
  int64_t bits;
  std::memcpy(&bits, &loss, sizeof bits);
  return {{"t", "steps"},       {"step", step},
          {"kind", "steady"},   {"flags", std::isfinite(loss) ? 0 : 16},
          {"end_us", now_us()}, {"wall_s", wall_s * (1 + 1e-3 * static_cast<double>(step))},
          {"tokens", tokens},   {"tokens_total", tokens * step},
          {"loss", loss},       {"loss_bits", bits},
          {"grad_norm", 1.0},   {"lr", 1e-3},
          {"data_wait_s", 0.0}, {"comm_exposed_s", 0.0}};
}

void train(const json& cell, int rank, SpoolWriter& spool, worker::EventPipe& events) {
  const json& config = cell.at("config");
  const json fake = config.value("fake", json::object());
  const auto steps = config.at("train").at("steps").get<int64_t>();
  const std::string behaviour = fake.value("behaviour", "ok");
  const bool faulty = fake.value("rank", rank) == rank;
  events.phase("load");
  if (fake.value("report_memory_limit", false)) std::cout << cell["memory_limit_bytes"] << "\n";
  events.phase("step");
  for (int64_t step = 1; step <= steps; ++step) {
    if (faulty && step == fake.value("at_step", int64_t{2})) commit(behaviour, spool.path());
    std::this_thread::sleep_for(std::chrono::milliseconds(fake.value("step_ms", 1)));
    const bool nan = faulty && behaviour == "nan" && step == steps;
    const double loss =
        nan ? std::numeric_limits<double>::quiet_NaN() : 5.0 - 0.01 * static_cast<double>(step);
    spool.append(step_row(config, step, loss));
    events.progress(step, steps, 1000, loss, kFakeBytes);
  }
  spool.append({{"t", "memory"}, {"phase", "step"}, {"peak_allocated_bytes", kFakeBytes}});
  spool.append({{"t", "facts"}, {"involuntary_switches", fake.value("switches", 3)}});
  events.phase("done");
}

int run_rank(const json& cell, int rank, int events_fd) {
  worker::EventPipe events(events_fd);
  worker::print_stacks_on_signals();
  std::unique_ptr<SpoolWriter> spool;
  std::unique_ptr<worker::Heartbeat> heartbeat;
  const int code = worker::guarded(events, [&] {
    worker::confine(cell, rank);
    spool = std::make_unique<SpoolWriter>(
        cell.at("spool_dir").get<std::string>(),
        SpoolIdentity{.attempt_id = cell.at("attempt_id").get<int64_t>(),
                      .rank = rank,
                      .cell_id = cell.at("cell_id").get<std::string>()});
    heartbeat = std::make_unique<worker::Heartbeat>(events, [&] { spool->sync_if_due(); });
    train(cell, rank, *spool, events);
  });
  heartbeat.reset();
  if (spool) spool->close(worker::outcome_name(code));
  return code;
}

int main(const std::vector<std::string>& arguments) {
  if (arguments.size() == 3 && arguments[0] == "template") {
    const worker::TemplateHooks hooks{
        .load =
            [](const json& plugins) {
              for (const json& path : plugins) {  // a plugin that breaks while it is loaded
                const std::string name = path.get<std::string>();
                if (name.find("load-throws") != std::string::npos) throw Error("P06 it threw");
                if (name.find("load-crashes") != std::string::npos) std::abort();
                if (name.find("load-threads") != std::string::npos) {
                  std::thread([] { pause(); }).detach();
                }
              }
            },
        .child = run_rank};
    return worker::serve_template(std::stoi(arguments[2]), hooks);
  }
  if (arguments.size() == 6 && arguments[0] == "run") {
    const auto cell = json::parse(read_file(arguments[1]));
    return run_rank(cell, std::stoi(arguments[3]), std::stoi(arguments[5]));
  }
  std::cerr << "usage: fake_worker run CELL --rank R --events-fd N | template --socket-fd N\n";
  return kExitUsage;
}

}  // namespace
}  // namespace assay::fake

int main(int argc, char** argv) {
  return assay::fake::main(std::vector<std::string>(argv + 1, argv + argc));
}
