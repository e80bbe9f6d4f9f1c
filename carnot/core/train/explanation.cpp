#include "carnot/core/train/explanation.h"

#include <ATen/Functions.h>

#include <cmath>
#include <limits>

#include "carnot/core/credit/rule.h"
#include "carnot/core/loss/clip.h"
#include "carnot/core/loss/loss.h"
#include "carnot/core/loss/ratio.h"
#include "carnot/core/loss/reduction.h"
#include "carnot/core/loss/value.h"
#include "carnot/core/train/packing.h"

namespace carnot {
namespace {

bool scales_by_current_entropy(const ObjectiveOptions& options) {
  return options.entropy_scale != 0 && options.entropy_scale_over == EntropyScaleOver::CurrentMicroBatch;
}

bool has_critic(const ObjectiveOptions& options) { return options.value_coefficient > 0; }

/// True if every sampled token of the trajectories that count has a target.
bool has_value_targets(std::span<const Trajectory> trajectories, const CreditTable& credit) {
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    if (!trajectories[i].leaf().is_included()) continue;
    const std::vector<bool> sampled = trajectories[i].sampled();
    for (std::size_t t = 0; t < sampled.size(); ++t)
      if (sampled[t] && std::isnan(credit[i].value_target[t])) return false;
  }
  return true;
}

Status check_options(const ObjectiveOptions& options, std::span<const Trajectory> trajectories,
                     const CreditTable& credit) {
  std::vector<std::string> problems;
  if (scales_by_current_entropy(options))
    problems.push_back(
        "objective.entropy_scale_over: current_micro_batch takes the current policy's entropies, which rows do not "
        "hold");
  if (options.reduction == Reduction::TokenSumOverConstant && options.reduction_constant == 0)
    problems.push_back(
        "objective.reduction_constant: expected the divisor; a run takes its response limit, which rows do not hold");
  if (has_critic(options) && !has_value_targets(trajectories, credit))
    problems.push_back(
        "objective.value_coefficient: the critic's loss needs targets, which no credit rule of this method sets");
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

/// Leaves out the term that no column can replace, and says which.
std::vector<std::string> exclude_terms(ObjectiveOptions& options) {
  if (options.entropy_coefficient == 0) return {};
  options.entropy_coefficient = 0;
  return {"the entropy bonus: entropy depends on the whole softmax, not on the sampled token alone"};
}

/// All trajectories of a step, as one micro-batch; empty if they have no sampled token.
std::vector<MicroBatch> one_batch(const ObjectiveOptions& options, std::span<const Trajectory> trajectories,
                                  const CreditTable& credit, std::span<const int> step) {
  return pack(trajectories, credit, step,
              {.max_tokens = std::numeric_limits<int>::max(),
               .sequence = options.sequence,
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
    logprob_T.mutable_data_ptr<double>()[t] = columns[i][places[t].token];
  }
  return logprob_T.requires_grad_();
}

ClipState state_of(const Surrogate& surrogate, const Ratio& ratio, const at::Tensor& advantage_T, std::size_t t) {
  const auto holds = [&](const at::Tensor& flag_T) { return flag_T.const_data_ptr<bool>()[t]; };
  if (holds(surrogate.dual_clipped_T)) return ClipState::Dual;
  if (holds(surrogate.clipped_T)) return advantage_T.const_data_ptr<double>()[t] > 0 ? ClipState::High : ClipState::Low;
  return holds(ratio.bounded_T) ? ClipState::Limit : ClipState::None;
}

Explanation untrained(const ObjectiveOptions& options, std::span<const Trajectory> trajectories) {
  Explanation explanation;
  for (const Trajectory& trajectory : trajectories) {
    const auto tokens = static_cast<std::size_t>(trajectory.num_tokens());
    const std::vector<double> nothing(tokens, std::nan("")), absent;
    explanation.trajectories.push_back({.ratio = nothing,
                                        .clip_state = std::vector<ClipState>(tokens),
                                        .gradient = nothing,
                                        .policy_gradient = nothing,
                                        .unit_share = nothing,
                                        .scaled_advantage = options.entropy_scale != 0 ? nothing : absent,
                                        .value_loss = has_critic(options) ? nothing : absent,
                                        .value_gradient = has_critic(options) ? nothing : absent});
  }
  return explanation;
}

double number_at(const at::Tensor& values_T, std::size_t t) { return values_T.const_data_ptr<double>()[t]; }

/// Derivative of the loss with respect to each token's log-probability.
at::Tensor gradient_of(const ObjectiveOptions& options, const MicroBatch& batch, LossInputs inputs,
                       std::span<const Trajectory> trajectories) {
  inputs.logprob_T = current_log_probs(batch.places, trajectories);
  policy_loss(options, inputs, batch.step).total.backward();
  return inputs.logprob_T.grad();
}

at::Tensor policy_gradient(ObjectiveOptions options, const MicroBatch& batch,
                           std::span<const Trajectory> trajectories) {
  options.kl_coefficient = options.value_coefficient = 0;
  return gradient_of(options, batch, batch.inputs, trajectories);
}

at::Tensor unit_shares(const ObjectiveOptions& options, const MicroBatch& batch) {
  LossInputs inputs = batch.inputs;
  inputs.weight_T = at::ones_like(inputs.weight_T);
  return token_shares(options.reduction, Counting::ByWeight, inputs, batch.step);
}

void explain_batch(const ObjectiveOptions& options, const MicroBatch& batch, std::span<const Trajectory> trajectories,
                   std::vector<TokenExplanation>& explained) {
  LossInputs inputs = batch.inputs;
  if (has_critic(options)) inputs.value_T = inputs.value_old_T.clone().requires_grad_();
  const at::Tensor gradient_T = gradient_of(options, batch, inputs, trajectories);
  const at::Tensor policy_gradient_T = policy_gradient(options, batch, trajectories);
  const at::Tensor unit_share_T = unit_shares(options, batch);
  inputs.logprob_T = current_log_probs(batch.places, trajectories);
  const Ratio ratio = policy_ratio(options.ratio, inputs);
  const Surrogate surrogate = clipped_surrogate(options, ratio, inputs.advantage_T, inputs.clip_scale_T);
  const at::Tensor value_loss_T =
      has_critic(options)
          ? clipped_value_error(inputs.value_T, inputs.value_old_T, inputs.value_target_T, options.value_clip).loss_T
          : at::Tensor();
  for (std::size_t t = 0; t < batch.places.size(); ++t) {
    TokenExplanation& own = explained[batch.places[t].trajectory];
    const auto at = static_cast<std::size_t>(batch.places[t].token);
    own.ratio[at] = number_at(ratio.ratio_T, t);
    own.clip_state[at] = state_of(surrogate, ratio, inputs.advantage_T, t);
    own.gradient[at] = number_at(gradient_T, t);
    own.policy_gradient[at] = number_at(policy_gradient_T, t);
    own.unit_share[at] = number_at(unit_share_T, t);
    if (options.entropy_scale != 0) own.scaled_advantage[at] = number_at(inputs.advantage_T, t);
    if (!has_critic(options)) continue;
    own.value_loss[at] = number_at(value_loss_T, t);
    own.value_gradient[at] = number_at(inputs.value_T.grad(), t);
  }
}

}  // namespace

std::vector<Column> explained_columns(const ObjectiveOptions& options) {
  std::vector<Column> columns = columns_read(options);
  columns.insert(columns.begin(), Column::LogProbCurrent);
  return columns;
}

Result<Explanation> explain_steps(ObjectiveOptions options, std::span<const Trajectory> trajectories,
                                  const CreditTable& credit) {
  CARNOT_RETURN_IF_ERROR(check_options(options, trajectories, credit));
  Explanation explanation = untrained(options, trajectories);
  explanation.excluded = exclude_terms(options);
  for (const std::vector<int>& step : members_by_step(trajectories))
    for (const MicroBatch& batch : one_batch(options, trajectories, credit, step))
      explain_batch(options, batch, trajectories, explanation.trajectories);
  return explanation;
}

}  // namespace carnot
