// branch/branch.h -- how a task's rollout budget is spent: where trajectories branch. Works on numbers only.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace carnot {

/// Which turn's entropy decides, and where a branch starts.
enum class BranchTiming {
  AfterObservation,  ///< the first tokens of the turn after an observation; a branch starts before that turn
  SameTurn,          ///< the turn that made the call; a branch starts after its observation (published ARPO, AEPO)
};

/// What BranchContext::consecutive counts: branches since the last decision not to branch.
enum class BranchStreak {
  Trajectory,  ///< along one trajectory; a branch starts with its parent's count
  Task,        ///< over all trajectories of the task, in order of decision
};

/// How the entropy of a turn is measured (turn_entropy()).
struct TurnEntropyMeasure {
  int tokens = 20;     ///< number of first sampled tokens
  int candidates = 0;  ///< 0: full softmax; else this many likeliest tokens and the sampled one, not renormalised
};

/// Entropies of one trajectory that is sampled before the budget is divided (AEPO).
struct EntropyProbe {
  double root = 0;                   ///< first tokens after the prompt
  std::vector<double> tool_calls{};  ///< of each turn after a tool's answer
};

/// Grows each tree from randomly picked nodes instead of deciding turn by turn (Tree-GRPO). In every round, `nodes`
/// starting points are drawn per tree, with replacement, from the root and the turns that do not end a trajectory; each
/// is continued to an end. Then leaves[t] leaves of tree t are kept, chosen uniformly.
struct TreeExpansion {
  int nodes = 2;
  int rounds = 1;
  std::vector<int> leaves{};  ///< one number per tree; their sum is the budget
};

/// What a policy knows when it decides about one more trajectory.
struct BranchContext {
  double turn_entropy = 0;     ///< according to timing() and measure()
  double initial_entropy = 0;  ///< the same for the trajectory's first turn; a branch has its own
  int trajectories = 0;        ///< of this task so far
  int budget = 0;              ///< of this task
  int consecutive = 0;         ///< according to streak()
  double uniform = 0;          ///< the random draw for this decision
};

/// Decides where trajectories branch. The part of the budget not spent on branches is sampled from the prompt.
class BranchPolicy {
 public:
  virtual ~BranchPolicy() = default;
  virtual std::string name() const = 0;
  /// Trajectories (for an expansion: trees) that start from the prompt.
  virtual int initial(int budget) const = 0;
  /// Whether to spend one more trajectory here. Never called once the budget is spent.
  virtual bool branch_here(const BranchContext& at) const = 0;
  /// False: no turn ever branches, and the engine need not stop to ask.
  virtual bool ever_branches() const { return true; }

  /// Decisions taken at one place, each with its own draw.
  virtual int attempts() const { return 1; }
  virtual BranchTiming timing() const { return BranchTiming::AfterObservation; }
  virtual BranchStreak streak() const { return BranchStreak::Trajectory; }
  virtual TurnEntropyMeasure measure() const { return {}; }

  /// True: sample one trajectory first, and ask initial(budget, probe) with its entropies.
  virtual bool wants_probe() const { return false; }
  virtual int initial(int budget, const EntropyProbe&) const { return initial(budget); }

  /// If set, the trees grow by this plan, and branch_here() is never called.
  virtual std::optional<TreeExpansion> expansion(int) const { return std::nullopt; }
};

/// The policy that never branches.
std::unique_ptr<BranchPolicy> independent();

/// The entropy of a turn as ARPO (arXiv:2507.19849) measures it: longer turns count more, up to `tokens`. Sum of the
/// full-softmax entropies (nats) of the first `tokens` sampled tokens, over ln(vocabulary). REQUIRES:
/// vocabulary > 1.
double turn_entropy(std::span<const double> token_entropies, int tokens, int vocabulary);

/// The same from the log-probabilities of candidates, as an inference engine returns them: -sum p ln p over all
/// candidates of the first `tokens` tokens, without renormalisation. REQUIRES: vocabulary > 1.
double turn_entropy_of_candidates(std::span<const std::vector<double>> candidate_log_probs, int tokens, int vocabulary);

}  // namespace carnot
