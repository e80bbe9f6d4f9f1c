// branch/branch.h -- how the rollout budget of a task is spent: where a trajectory branches. Sees numbers only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace carnot {

/// Which turn's entropy decides, and where a branch leaves.
enum class BranchTiming {
  AfterObservation,  ///< the first tokens of the turn after an observation; a branch leaves before that turn
  SameTurn,          ///< the turn that made the call; a branch leaves after its observation (published ARPO, AEPO)
};

/// What BranchContext::consecutive counts: branches without a decision against one in between.
enum class BranchStreak {
  Trajectory,  ///< along one trajectory; a branch starts with its parent's count
  Task,        ///< over all trajectories of the task, in order of decision
};

/// How the entropy of a turn is measured (branch/turn_entropy.h).
struct TurnEntropyMeasure {
  int tokens = 20;     ///< how many of the first sampled tokens
  int candidates = 0;  ///< 0: full softmax; else so many likeliest tokens and the sampled one, not renormalised
};

/// Entropies of one trajectory sampled before the budget is divided (AEPO).
struct EntropyProbe {
  double root = 0;                   ///< first tokens after the prompt
  std::vector<double> tool_calls{};  ///< of each turn after a tool's answer
};

/// Grows each tree from nodes picked at random instead of deciding turn by turn (Tree-GRPO). In every round
/// `nodes` starting points are drawn per tree, with replacement, from the root and the turns that end no
/// trajectory; each is continued to an end. Then leaves[t] leaves of tree t stay, chosen uniformly.
struct TreeExpansion {
  int nodes = 2;
  int rounds = 1;
  std::vector<int> leaves{};  ///< one number per tree; their sum is the budget
};

/// What a policy knows when it decides about one more trajectory.
struct BranchContext {
  double turn_entropy = 0;     ///< as timing() and measure() say
  double initial_entropy = 0;  ///< the same of the trajectory's first turn; a branch has its own
  int trajectories = 0;        ///< of this task so far
  int budget = 0;              ///< of this task
  int consecutive = 0;         ///< as streak() says
  double uniform = 0;          ///< the draw that belongs to this decision
};

/// Trajectories of the budget that no branch took start from the prompt.
class BranchPolicy {
 public:
  virtual ~BranchPolicy() = default;
  virtual std::string name() const = 0;
  /// Trajectories (for an expansion: trees) started from the prompt.
  virtual int initial(int budget) const = 0;
  /// Spend one more trajectory here? Never where the budget is spent.
  virtual bool branch_here(const BranchContext& at) const = 0;
  /// False: no turn ever branches and the engine need not stop to ask.
  virtual bool ever_branches() const { return true; }

  /// Decisions taken at one place, each with a draw of its own.
  virtual int attempts() const { return 1; }
  virtual BranchTiming timing() const { return BranchTiming::AfterObservation; }
  virtual BranchStreak streak() const { return BranchStreak::Trajectory; }
  virtual TurnEntropyMeasure measure() const { return {}; }

  /// True: sample one trajectory first, and ask initial(budget, probe) with its entropies.
  virtual bool wants_probe() const { return false; }
  virtual int initial(int budget, const EntropyProbe&) const { return initial(budget); }

  /// Set: the trees grow by this plan, and branch_here() is never asked.
  virtual std::optional<TreeExpansion> expansion(int) const { return std::nullopt; }
};

}  // namespace carnot
