// rank/launcher.h -- which of several processes this one is, as the launcher that started it says.
//
// A launcher (torchrun, srun, Kubernetes) starts one program several times. Each process is a rank of one group and
// finds in its environment variables which one it is and where the group meets. A group of one needs no launcher.
#pragma once

#include <map>
#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

struct RankSetting {
  int rank = 0;  ///< 0 to size - 1
  int size = 1;  ///< processes of the group
  int local_rank = 0;
  int local_size = 1;     ///< processes of the group on this machine, where the launcher says how many
  std::string address{};  ///< host at which the group meets; empty for a group of one
  int port = 0;
  bool launcher_has_store = false;  ///< the launcher serves the group's store there; else rank 0 does
  std::string group_name{};         ///< differs from group to group, and from one start of a group to the next

  bool operator==(const RankSetting&) const = default;
};

/// Environment variables by name.
using Variables = std::map<std::string, std::string>;

/// Those of this process.
Variables process_variables();

/// Reads the first of these that is there; with none of them the process is alone.
///  * RANK and WORLD_SIZE (torchrun, Kubeflow's TrainJob, or set by hand), with MASTER_ADDR and MASTER_PORT;
///  * SLURM_STEP_NUM_TASKS and SLURM_PROCID (srun): rank 0 is on the step's first machine. A batch script has
///    SLURM_PROCID, too, but is no step, so what it starts without srun is alone;
///  * LWS_GROUP_SIZE and LWS_WORKER_INDEX (Kubernetes' LeaderWorkerSet), with LWS_LEADER_ADDRESS.
/// MASTER_ADDR and MASTER_PORT, where they are set, win over what the other two would give. An error names every
/// variable that is missing, is no number or contradicts another.
Result<RankSetting> rank_setting(const Variables& variables);

/// What CUDA_VISIBLE_DEVICES has to be for this rank to see one GPU, its own, as the first: of those that `variables`
/// name there, or of all, the one with the number of the rank on its machine. A single name is the launcher's choice.
/// The error says that the machine's ranks are more than the GPUs that are named.
Result<std::string> gpu_of_rank(const RankSetting& setting, const Variables& variables);

/// The first name of one of Slurm's lists: "gpu003" of "gpu[003-007,9],cpu1".
Result<std::string> first_of_node_list(const std::string& list);

/// Number `node` of one of Slurm's lists of counts: "2(x3),1" means 2, 2, 2, 1.
Result<int> count_of_node(const std::string& counts, int node);

}  // namespace carnot
