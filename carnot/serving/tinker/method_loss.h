// serving/tinker/method_loss.h -- Carnot's methods as losses of forward_backward: `loss_fn="grpo + aem"`.
//
// A datum is a trajectory, and the data of a request are one optimizer step: credit, filter and denominators are over
// all of them. Read per token, next to `target_tokens`: `mask` (1: the policy sampled the target), `logprobs` (when it
// did), and where present `turn` (numbers; otherwise each run of sampled tokens is one), `action` (1: of the action,
// not of the thinking), `info_gain` (of the token's turn), `entropy_old`. Per datum: `group`, equal for those of one
// task, and `score`. What else a method reads is measured here: entropies under the current weights, and
// log-probabilities and energies under the base model. `loss_fn_config` has the method's options and objective.* and
// filter.* keys.
#pragma once

#include "carnot/core/base/result.h"
#include "carnot/core/nn/model.h"
#include "carnot/serving/tinker/wire.h"

namespace carnot {

/// Whether a loss is a method, or a composition of methods. Tinker's own losses come first: `ppo` is theirs.
bool is_method(const std::string& loss);

/// As TrainedAdapter::forward_backward(). `logprobs` of tokens that were not sampled are 0; metrics are means.
Result<ForwardBackwardOutput> method_forward_backward(const Model& policy, const Model& reference,
                                                      const ForwardBackwardRequest& request, int micro_batch_tokens);

}  // namespace carnot
