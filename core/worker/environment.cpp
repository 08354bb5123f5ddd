// Reads and checks the variables of torchrun and Slurm.
#include "core/worker/environment.h"

#include <charconv>
#include <cstdlib>
#include <utility>

#include "assay/error.h"

namespace assay::worker {
namespace {

constexpr int kFirstSlurmPort = 15000;  // below Linux's ephemeral range, as job scripts do
constexpr int kSlurmPorts = 10000;
constexpr int kMaxPort = 65535;

std::optional<int64_t> whole_number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Collects what is wrong, so that one message names all of it.
class Checked {
 public:
  Checked(std::string launcher, const Variables& variable)
      : launcher_(std::move(launcher)), variable_(variable) {}

  std::string text(const std::string& name) {
    const auto value = variable_(name);
    if (!value) note(name + " is not set");
    return value.value_or("");
  }

  int integer(const std::string& name, int64_t low, int64_t high) {
    const std::string value = text(name);
    if (value.empty()) return static_cast<int>(low);
    const auto number = whole_number(value);
    if (number && *number >= low && *number <= high) return static_cast<int>(*number);
    note(name + "='" + value + "' is not in [" + std::to_string(low) + ", " + std::to_string(high) +
         "]");
    return static_cast<int>(low);
  }

  void note(const std::string& problem) { problems_ += (problems_.empty() ? "" : "; ") + problem; }

  void finish() const {
    if (problems_.empty()) return;
    throw Error("the environment of " + launcher_ + " cannot be used: " + problems_,
                "start the ranks with " + launcher_ + ", or give --rank");
  }

 private:
  const std::string launcher_;
  const Variables& variable_;
  std::string problems_;
};

constexpr int64_t kMaxWorld = 1 << 20;

LaunchEnvironment from_torchrun(const Variables& variable) {
  Checked checked("torchrun", variable);
  LaunchEnvironment e{.launcher = "torchrun"};
  e.world = checked.integer("WORLD_SIZE", 1, kMaxWorld);
  e.rank = checked.integer("RANK", 0, e.world - 1);
  e.local_rank = checked.integer("LOCAL_RANK", 0, e.rank);
  e.master_address = checked.text("MASTER_ADDR");
  e.master_port = checked.integer("MASTER_PORT", 1, kMaxPort);
  const auto tasks = variable("SLURM_NTASKS"), process = variable("SLURM_PROCID");
  const bool one_task_per_rank = tasks && whole_number(*tasks) == e.world;
  if (one_task_per_rank && process && whole_number(*process) != e.rank) {
    checked.note("RANK=" + std::to_string(e.rank) + " contradicts SLURM_PROCID=" + *process +
                 " (both count " + *tasks + " ranks)");
  }
  checked.finish();
  return e;
}

LaunchEnvironment from_slurm(const Variables& variable) {
  Checked checked("slurm", variable);
  LaunchEnvironment e{.launcher = "slurm"};
  e.world = checked.integer("SLURM_NTASKS", 1, kMaxWorld);
  e.rank = checked.integer("SLURM_PROCID", 0, e.world - 1);
  e.local_rank = checked.integer("SLURM_LOCALID", 0, e.rank);
  const std::string nodes = checked.text("SLURM_JOB_NODELIST");
  if (variable("MASTER_PORT")) {
    e.master_port = checked.integer("MASTER_PORT", 1, kMaxPort);
  } else {
    const auto job = whole_number(variable("SLURM_JOB_ID").value_or("0")).value_or(0);
    e.master_port = kFirstSlurmPort + static_cast<int>(job % kSlurmPorts);
  }
  checked.finish();
  e.master_address = variable("MASTER_ADDR").value_or(expand_node_list(nodes).front());
  return e;
}

[[noreturn]] void bad_list(const std::string& list) {
  throw Error("SLURM_JOB_NODELIST='" + list + "' is no list of hosts",
              "it reads like node[03-05,9],login1");
}

/// Appends the names of "prefix[ranges]suffix".
void expand_ranges(const std::string& prefix, const std::string& ranges, const std::string& list,
                   std::vector<std::string>& out) {
  for (size_t start = 0; start <= ranges.size();) {
    const size_t comma = std::min(ranges.find(',', start), ranges.size());
    const std::string range = ranges.substr(start, comma - start);
    const size_t dash = range.find('-');
    const std::string low = range.substr(0, dash);
    const std::string high = dash == std::string::npos ? low : range.substr(dash + 1);
    const auto first = whole_number(low), last = whole_number(high);
    if (!first || !last || *first < 0 || *last < *first || *last - *first > kMaxWorld) {
      bad_list(list);
    }
    for (int64_t i = *first; i <= *last; ++i) {
      std::string number = std::to_string(i);
      if (number.size() < low.size()) number.insert(0, low.size() - number.size(), '0');
      out.push_back(prefix + number);
    }
    start = comma + 1;
  }
}

}  // namespace

Variables process_variables() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

std::optional<LaunchEnvironment> launch_environment(const Variables& variable) {
  if (variable("RANK") || variable("WORLD_SIZE")) return from_torchrun(variable);
  if (variable("SLURM_PROCID")) return from_slurm(variable);
  return std::nullopt;
}

int rank_from_environment(const Variables& variable, int world) {
  const auto environment = launch_environment(variable);
  if (!environment) {
    throw Error("which rank this is is not known: neither torchrun nor Slurm started this process",
                "give --rank, or start it with torchrun or srun");
  }
  if (environment->world != world) {
    throw Error(environment->launcher + " started " + std::to_string(environment->world) +
                    " ranks, the cell has " + std::to_string(world),
                "start as many ranks as the product of the cell's mesh without ep");
  }
  return environment->rank;
}

std::vector<std::string> expand_node_list(const std::string& list) {
  std::vector<std::string> names;
  std::string name;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || list[i] == ',') {
      if (!name.empty()) names.push_back(std::exchange(name, {}));
    } else if (list[i] == '[') {
      const size_t close = list.find(']', i);
      if (close == std::string::npos) bad_list(list);
      expand_ranges(std::exchange(name, {}), list.substr(i + 1, close - i - 1), list, names);
      i = close;
    } else {
      name += list[i];
    }
  }
  if (names.empty()) bad_list(list);
  return names;
}

}  // namespace assay::worker
