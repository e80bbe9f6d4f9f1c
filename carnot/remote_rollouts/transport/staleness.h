// remote_rollouts/transport/staleness.h -- bounded staleness: which steps' tasks may be handed out, and how old the
// weights of a result are.
//
// AReaL (arXiv:2505.24298), Eq. 3: of a run's groups, numbered from 0, B a step, number n may be handed out once
// floor(n / B) <= i + max_staleness, where i is the step that the trainer is at. AReaL trains on what comes first. Here
// each step keeps its own groups, so that what a step trains on is a function of the recipe, and the rule is one about
// steps. A task is rolled out with weights at least as new as those that were there when it was handed out. Step i
// therefore trains on weights that a step >= i - max_staleness began with.
#pragma once

#include <cstdint>
#include <map>

namespace carnot {

class StalenessBound {
 public:
  /// `max_staleness`: updates between the weights that sampled and those that are updated. `steps`: of the whole run.
  StalenessBound(std::int64_t max_staleness, std::int64_t steps) : max_(max_staleness), steps_(steps) {}

  /// Step `step` begins, with weights of this version. Called again, it is the same. REQUIRES: neither goes back.
  void begin(std::int64_t step, std::int64_t version);

  /// Tasks of the steps before this one may be handed out.
  std::int64_t handed_out_before() const;

  /// Steps from the last one that began with these weights, or with the next older ones, to `step`: how many updates
  /// they are behind. For weights before all that are known as for the oldest of them. REQUIRES: a step has begun.
  std::int64_t staleness(std::int64_t step, std::int64_t version) const;

  /// Whether step `step` may train on what these weights sampled.
  bool admits(std::int64_t step, std::int64_t version) const;

 private:
  std::int64_t max_;
  std::int64_t steps_;
  std::int64_t present_ = -1;
  std::map<std::int64_t, std::int64_t> last_step_{};  ///< by version: the last step that began with it
};

}  // namespace carnot
