#include "carnot/study/explanation.h"

#include <ATen/Functions.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "carnot/objective/clip.h"
#include "carnot/objective/loss.h"
#include "carnot/objective/ratio.h"
#include "carnot/train/packing.h"

namespace carnot {
namespace {

bool scales_by_current_entropy(const ObjectiveOptions& options) {
  return options.entropy_scale != 0 && options.entropy_scale_over == EntropyScaleOver::CurrentMicroBatch;
}

Status check_options(const ObjectiveOptions& options) {
  std::vector<std::string> problems;
  if (scales_by_current_entropy(options))
    problems.push_back(
        "objective.entropy_scale_over: current_micro_batch takes the present policy's entropies, which rows do not "
        "hold");
  if (options.reduction == Reduction::TokenSumOverConstant && options.reduction_constant == 0)
    problems.push_back(
        "objective.reduction_constant: expected the divisor; a run takes its response limit, which rows do not hold");
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

/// Leaves out the terms that do not depend on the sampled tokens' log-probabilities; says which.
std::vector<std::string> exclude_terms(ObjectiveOptions& options) {
  std::vector<std::string> excluded;
  if (options.entropy_coefficient > 0)
    excluded.push_back("the entropy bonus: entropy depends on the whole softmax, not on the sampled token alone");
  if (options.value_coefficient > 0) excluded.push_back("the critic's loss: it does not depend on the policy");
  options.entropy_coefficient = options.value_coefficient = 0;
  return excluded;
}

/// All trajectories that count, as one micro-batch; none where they have no sampled token.
std::vector<MicroBatch> one_batch(const ObjectiveOptions& options, std::span<const Trajectory> trajectories,
                                  const CreditTable& credit) {
  std::vector<int> step(trajectories.size());
  std::iota(step.begin(), step.end(), 0);
  return pack(trajectories, credit, step,
              {.max_tokens = std::numeric_limits<int>::max(),
               .constant = options.reduction_constant,
               .entropy_scale = options.entropy_scale,
               .partial_signals = true});
}

at::Tensor current_log_probs(const std::vector<TokenPlace>& places, std::span<const Trajectory> trajectories) {
  at::Tensor logprob_T = at::empty({static_cast<std::int64_t>(places.size())}, at::kDouble);
  std::vector<std::vector<double>> columns(trajectories.size());
  for (std::size_t t = 0; t < places.size(); ++t) {
    const auto i = static_cast<std::size_t>(places[t].trajectory);
    if (columns[i].empty()) columns[i] = trajectories[i].column(Column::LogProbCurrent);
    logprob_T.mutable_data_ptr<double>()[t] = columns[i][static_cast<std::size_t>(places[t].token)];
  }
  return logprob_T.requires_grad_();
}

ClipState state_of(const Surrogate& surrogate, const Ratio& ratio, const at::Tensor& advantage_T, std::size_t t) {
  const auto holds = [&](const at::Tensor& flag_T) { return flag_T.const_data_ptr<bool>()[t]; };
  if (holds(surrogate.dual_clipped_T)) return ClipState::Dual;
  if (holds(surrogate.clipped_T)) return advantage_T.const_data_ptr<double>()[t] > 0 ? ClipState::High : ClipState::Low;
  return holds(ratio.bounded_T) ? ClipState::Limit : ClipState::None;
}

Explanation untrained(std::span<const Trajectory> trajectories) {
  Explanation explanation;
  for (const Trajectory& trajectory : trajectories) {
    const auto tokens = static_cast<std::size_t>(trajectory.num_tokens());
    const std::vector<double> nothing(tokens, std::nan(""));
    explanation.trajectories.push_back(
        {.ratio = nothing, .clip_state = std::vector<ClipState>(tokens), .gradient = nothing});
  }
  return explanation;
}

}  // namespace

std::vector<Column> explained_columns(const ObjectiveOptions& options) {
  std::vector<Column> columns{Column::LogProbCurrent, Column::LogProbOld};
  if (options.kl_coefficient > 0) columns.push_back(Column::LogProbReference);
  if (options.importance_cap > 0) columns.push_back(Column::LogProbRollout);
  if (options.entropy_scale != 0 && !scales_by_current_entropy(options)) columns.push_back(Column::EntropyOld);
  return columns;
}

Result<Explanation> explain_step(ObjectiveOptions options, std::span<const Trajectory> trajectories,
                                 const CreditTable& credit) {
  if (const Status status = check_options(options); !status) return status.error();
  Explanation explanation = untrained(trajectories);
  explanation.excluded = exclude_terms(options);
  for (const MicroBatch& batch : one_batch(options, trajectories, credit)) {
    LossInputs inputs = batch.inputs;
    inputs.logprob_T = current_log_probs(batch.places, trajectories);
    policy_loss(options, inputs, batch.step).total.backward();
    const Ratio ratio = policy_ratio(options.ratio, inputs);
    const Surrogate surrogate = clipped_surrogate(options, ratio, inputs.advantage_T, inputs.clip_scale_T);
    for (std::size_t t = 0; t < batch.places.size(); ++t) {
      TokenExplanation& own = explanation.trajectories[static_cast<std::size_t>(batch.places[t].trajectory)];
      const auto at = static_cast<std::size_t>(batch.places[t].token);
      own.ratio[at] = ratio.ratio_T.const_data_ptr<double>()[t];
      own.clip_state[at] = state_of(surrogate, ratio, inputs.advantage_T, t);
      own.gradient[at] = inputs.logprob_T.grad().const_data_ptr<double>()[t];
    }
  }
  return explanation;
}

}  // namespace carnot
