#include "carnot/core/alarm/entries.h"

namespace carnot {
namespace {

constexpr const char* kDifference = "rollout_corr/log_prob_abs_diff/";

}  // namespace

std::optional<Reading> read_low_entropy(const AlarmInput& input) {
  const auto entropy = input.metric("actor/entropy");
  if (!entropy) return std::nullopt;
  if (*entropy >= input.options().low_entropy) return Reading{};
  return Reading{true, "the policy's entropy is " + in_words(*entropy) + " nats per token"};
}

std::optional<Reading> read_high_entropy(const AlarmInput& input) {
  const auto entropy = input.metric("actor/entropy");
  if (!entropy) return std::nullopt;
  const double first = input.memory.try_emplace("high_entropy/first", *entropy).first->second;
  if (*entropy - first <= input.options().entropy_rise) return Reading{};
  return Reading{true, "the policy's entropy is " + in_words(*entropy) + " nats per token; in the first step it was " +
                           in_words(first)};
}

std::optional<Reading> read_zero_gradient(const AlarmInput& input) {
  if (input.is_on("no_signal")) return std::nullopt;
  if (const auto kept = input.metric("rollout/groups_kept"); kept && *kept == 0 && input.options().low_gradient > 0)
    return Reading{true, "no group was left to learn from, so no update was made"};
  const auto norm = input.metric("actor/grad_norm");
  if (!norm) return std::nullopt;
  if (*norm >= input.options().low_gradient) return Reading{};
  return Reading{true, "the norm of the gradient is " + in_words(*norm)};
}

std::optional<Reading> read_bad_gradient(const AlarmInput& input) {
  const auto skipped = input.metric("actor/skipped_updates");  // so far
  if (!skipped) return std::nullopt;
  const auto [last, fresh] = input.memory.try_emplace("bad_gradient/skipped", input.step <= 1 ? 0 : *skipped);
  const double now = *skipped - last->second;
  last->second = *skipped;
  if (now < input.options().skipped_updates) return Reading{};
  return Reading{true, "the step skipped " + in_words(now) + (now == 1 ? " update" : " updates") +
                           ", since a gradient is not finite"};
}

std::optional<Reading> read_clipped_gradient(const AlarmInput& input) {
  const auto norm = input.metric("actor/grad_norm");
  if (!norm) return std::nullopt;
  if (*norm <= input.setting.max_grad_norm) return Reading{};
  return Reading{true, "every gradient of the last " + std::to_string(input.options().clipped_steps) +
                           " steps was clipped; the last norm is " + in_words(*norm) + ", train.max_grad_norm " +
                           in_words(input.setting.max_grad_norm)};
}

std::optional<Reading> read_high_kl(const AlarmInput& input) {
  const auto in_loss = input.metric("actor/kl_loss"), in_reward = input.metric("actor/reward_kl_penalty");
  const auto kl = in_loss ? in_loss : in_reward;
  if (!kl) return std::nullopt;
  if (*kl <= input.options().kl) return Reading{};
  return Reading{true, "the KL to the reference is " + in_words(*kl) + " nats"};
}

std::optional<Reading> read_policy_mismatch(const AlarmInput& input) {
  const auto mean = input.metric(std::string(kDifference) + "mean");
  if (!mean || input.setting.one_kernel_set) return std::nullopt;
  if (*mean <= input.options().log_prob_difference) return Reading{};
  return Reading{true, "log-probabilities of rollout and trainer differ by " + in_words(*mean) + " nats in the mean"};
}

std::optional<Reading> read_kernel_mismatch(const AlarmInput& input) {
  const auto largest = input.metric(std::string(kDifference) + "max");
  if (!largest || !input.setting.one_kernel_set) return std::nullopt;
  if (*largest <= input.options().exact_difference) return Reading{};
  return Reading{true, "log-probabilities of rollout and trainer differ by up to " + in_words(*largest) +
                           " nats, and the same kernels computed both"};
}

std::optional<Reading> read_stale_rollouts(const AlarmInput& input) {
  const auto staleness = input.metric("async/staleness/mean");
  if (!staleness) return std::nullopt;
  if (*staleness <= input.options().staleness) return Reading{};
  return Reading{true, "the weights that sampled are " + in_words(*staleness) + " updates behind in the mean"};
}

}  // namespace carnot
