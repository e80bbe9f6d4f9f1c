// branch/branch.h -- how the rollout budget of a task is spent: where a trajectory branches. Sees numbers only.
#pragma once

#include <memory>
#include <string>

namespace carnot {

/// What a policy knows when a turn has ended and its trajectory goes on.
struct BranchContext {
  double turn_entropy = 0;     ///< of the first tokens of the turn that follows the observation (see BranchTiming)
  double initial_entropy = 0;  ///< the same of the trajectory's first turn
  int trajectories = 0;        ///< of this task so far
  int budget = 0;              ///< of this task
  int consecutive = 0;         ///< branches in a row, as the policy's own rule counts them
  double uniform = 0;          ///< the draw that belongs to this decision
};

class BranchPolicy {
 public:
  virtual ~BranchPolicy() = default;
  virtual std::string name() const = 0;
  /// Trajectories started from the prompt.
  virtual int initial(int budget) const = 0;
  /// Spend one more trajectory here?
  virtual bool branch_here(const BranchContext& at) const = 0;
  /// False: no turn ever branches and the engine need not stop to ask.
  virtual bool ever_branches() const { return true; }
};

/// Every trajectory starts from the prompt.
std::unique_ptr<BranchPolicy> independent();

}  // namespace carnot
