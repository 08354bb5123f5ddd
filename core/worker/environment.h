// Which rank this process is, from torchrun's or Slurm's variables.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::worker {

struct LaunchEnvironment {
  std::string launcher{};  ///< "torchrun" or "slurm"
  int rank = 0, world = 1, local_rank = 0;
  std::string master_address{};  ///< where rank 0 listens
  int master_port = 0;
};

/// Value of a variable, nothing if it is unset or empty.
using Variables = std::function<std::optional<std::string>(const std::string&)>;
Variables process_variables();

/// torchrun: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT. Slurm: SLURM_PROCID,
/// SLURM_NTASKS, SLURM_LOCALID, SLURM_JOB_NODELIST (its first host is the master; the port is
/// MASTER_PORT, else derived from SLURM_JOB_ID). torchrun under srun: torchrun's count.
/// Nothing when neither started this process; throws Error naming every variable that is missing,
/// no number or out of range, and both sides of a contradiction.
std::optional<LaunchEnvironment> launch_environment(const Variables& variable);

/// The rank of a process that was not told it. Throws Error when nothing started it, or when the
/// launcher's world is not the cell's.
int rank_from_environment(const Variables& variable, int world);

/// "node[03-05,9],login1" -> node03 node04 node05 node9 login1; throws Error.
std::vector<std::string> expand_node_list(const std::string& list);

}  // namespace assay::worker
