#include "carnot/core/loss/loss.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <span>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/credit/entropy_modulate.h"
#include "carnot/core/loss/clip.h"
#include "carnot/core/loss/importance.h"
#include "carnot/core/loss/kl.h"
#include "carnot/core/loss/ratio.h"
#include "carnot/core/loss/reduction.h"
#include "carnot/core/loss/sums.h"
#include "carnot/core/loss/value.h"

namespace carnot {
namespace {

LossInputs on_cpu_in_double(const LossInputs& inputs) {
  LossInputs x = inputs;
  for (at::Tensor* tensor :
       {&x.logprob_T, &x.entropy_T, &x.clamped_entropy_T, &x.value_T, &x.logprob_old_T, &x.logprob_rollout_T,
        &x.logprob_reference_T, &x.value_old_T, &x.advantage_T, &x.weight_T, &x.clip_scale_T, &x.value_target_T})
    if (tensor->defined()) *tensor = tensor->to(at::TensorOptions(at::kCPU).dtype(at::kDouble));
  for (at::Tensor* tensor : {&x.turn_T, &x.sequence_T}) *tensor = tensor->to(at::kCPU);
  return x;
}

/// Collects terms of the loss and what is said about them.
struct Composer {
  const ObjectiveOptions& options;
  const LossInputs& inputs;
  const Denominators& step;
  Loss loss;

  double tokens() const { return static_cast<double>(inputs.logprob_T.numel()); }

  void metric(const char* name, double sum, double count) {
    loss.metrics.push_back({.name = name, .sum = sum, .count = count});
  }
  void token_metric(const char* name, const at::Tensor& values_T) {
    metric(name, ordered_sum(values_T.to(at::kDouble)), tokens());
  }
  void reduced_metric(const char* name, const at::Tensor& share_times_loss_T) {
    metric(name, ordered_sum(share_times_loss_T), tokens() / step.tokens);
  }
  void add(const at::Tensor& term) { loss.total = loss.total.defined() ? loss.total + term : term; }

  void policy();
  void kl(const at::Tensor& share_T);
  void entropy(const at::Tensor& share_T);
  void value(const at::Tensor& share_T);
};

/// Published AEPO scales advantages by the current policy's entropies, within the micro-batch. Scaling over the
/// optimizer step happens before, where the step is packed.
at::Tensor scaled_advantage(const ObjectiveOptions& options, const LossInputs& inputs) {
  if (options.entropy_scale == 0 || options.entropy_scale_over != EntropyScaleOver::CurrentMicroBatch)
    return inputs.advantage_T;
  const at::Tensor entropy_T = inputs.entropy_T.detach().contiguous();
  const std::span<const double> entropies(entropy_T.const_data_ptr<double>(), entropy_T.numel());
  const std::vector<double> factors = entropy_scale(entropies, options.entropy_scale);
  return inputs.advantage_T * at::tensor(at::ArrayRef<double>(factors), at::kDouble);
}

void Composer::policy() {
  const Ratio ratio = policy_ratio(options.ratio, inputs);
  const at::Tensor advantage_T = scaled_advantage(options, inputs);
  const Surrogate surrogate = clipped_surrogate(options, ratio, advantage_T, inputs.clip_scale_T);
  at::Tensor credit_T = advantage_T * token_shares(options.reduction, Counting::ByWeight, inputs, step);
  if (options.importance_cap > 0)
    credit_T = credit_T * importance_weights(inputs.logprob_old_T, inputs.logprob_rollout_T, options.importance_cap);

  at::Tensor slope_T = credit_T * surrogate.slope_T;
  if (options.segment_gradient == SegmentGradient::Shared && options.ratio == RatioLevel::Turn)
    slope_T = segment_mean(slope_T, inputs.turn_T, inputs.num_turns);
  if (options.segment_gradient == SegmentGradient::Shared && options.ratio == RatioLevel::Sequence)
    slope_T = segment_mean(slope_T, inputs.sequence_T, inputs.num_sequences);

  const at::Tensor value_T = credit_T * surrogate.value_T;
  add(-(value_T + slope_T * (inputs.logprob_T - inputs.logprob_T.detach())).sum());
  reduced_metric("actor/pg_loss", -value_T);
  token_metric("actor/pg_clipfrac", surrogate.clipped_T);
  token_metric("actor/pg_clipfrac_lower", surrogate.dual_clipped_T);
  token_metric("actor/ppo_kl", -ratio.token_log_ratio_T);
}

void Composer::kl(const at::Tensor& share_T) {
  if (!inputs.logprob_reference_T.defined()) return;
  const at::Tensor kl_T =
      kl_estimate(options.kl_estimator, options.kl_straight_through, inputs.logprob_T, inputs.logprob_reference_T);
  if (options.kl_coefficient > 0) add(options.kl_coefficient * (share_T * kl_T).sum());
  reduced_metric("actor/kl_loss", share_T * kl_T);
}

void Composer::entropy(const at::Tensor& share_T) {
  const bool clamped = inputs.clamped_entropy_T.defined();
  if (options.entropy_coefficient > 0)
    add(-options.entropy_coefficient * (share_T * (clamped ? inputs.clamped_entropy_T : inputs.entropy_T)).sum());
  if (inputs.entropy_T.defined()) token_metric("actor/entropy", inputs.entropy_T);
  if (clamped) token_metric("actor/clamped_entropy", inputs.clamped_entropy_T);
}

void Composer::value(const at::Tensor& share_T) {
  if (options.value_coefficient <= 0) return;
  const ValueError error =
      clipped_value_error(inputs.value_T, inputs.value_old_T, inputs.value_target_T, options.value_clip);
  add(options.value_coefficient * (share_T * error.loss_T).sum());
  reduced_metric("critic/vf_loss", share_T * error.loss_T);
  token_metric("critic/vf_clipfrac", error.clipped_T);
}

void check_signals(const ObjectiveOptions& options, const LossInputs& inputs) {
  CARNOT_CHECK(inputs.logprob_T.defined() && inputs.logprob_old_T.defined(), "the policy loss needs both");
  CARNOT_CHECK(options.importance_cap <= 0 || inputs.logprob_rollout_T.defined(), "importance_cap needs them");
  CARNOT_CHECK(options.kl_coefficient <= 0 || inputs.logprob_reference_T.defined(), "kl_coefficient needs them");
  CARNOT_CHECK(options.entropy_coefficient <= 0 || inputs.entropy_T.defined() || inputs.clamped_entropy_T.defined(),
               "entropy_coefficient needs one of them");
  CARNOT_CHECK(options.entropy_scale == 0 || options.entropy_scale_over != EntropyScaleOver::CurrentMicroBatch ||
                   inputs.entropy_T.defined(),
               "entropy_scale over the micro-batch needs them");
  CARNOT_CHECK(options.value_coefficient <= 0 ||
                   (inputs.value_T.defined() && inputs.value_old_T.defined() && inputs.value_target_T.defined()),
               "value_coefficient needs them");
}

}  // namespace

Loss policy_loss(const ObjectiveOptions& options, const LossInputs& inputs, const Denominators& step) {
  check_signals(options, inputs);
  if (inputs.logprob_T.numel() == 0) return {.total = at::zeros({}, at::kDouble)};
  const LossInputs in_double = on_cpu_in_double(inputs);
  Composer composer{.options = options, .inputs = in_double, .step = step, .loss = {}};
  composer.policy();
  const at::Tensor share_T = token_shares(options.reduction, Counting::ByToken, in_double, step);
  composer.kl(share_T);
  composer.entropy(share_T);
  composer.value(share_T);
  return std::move(composer.loss);
}

}  // namespace carnot
