#include "carnot/objective/importance.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "carnot/objective/ratio.h"
#include "carnot/objective/sums.h"

namespace carnot {
namespace {

at::Tensor log_ratio(const at::Tensor& logprob_old_T, const at::Tensor& logprob_rollout_T) {
  return (logprob_old_T - logprob_rollout_T).clamp(-kMaxLogRatio, kMaxLogRatio);
}

}  // namespace

at::Tensor importance_weights(const at::Tensor& logprob_old_T, const at::Tensor& logprob_rollout_T, double cap) {
  return log_ratio(logprob_old_T, logprob_rollout_T).exp().clamp_max(cap);
}

std::vector<MetricSum> mismatch_metrics(const at::Tensor& logprob_old_T, const at::Tensor& logprob_rollout_T) {
  const at::Tensor log_ratio_T = log_ratio(logprob_old_T, logprob_rollout_T);
  const at::Tensor ratio_T = log_ratio_T.exp();
  const auto count = static_cast<double>(ratio_T.numel());
  return {
      {.name = "rollout_corr/kl", .sum = ordered_sum(-log_ratio_T), .count = count},
      {.name = "rollout_corr/k3_kl", .sum = ordered_sum(ratio_T - log_ratio_T - 1), .count = count},
      {.name = "rollout_corr/chi2_token", .sum = ordered_sum(ratio_T.square() - 1), .count = count},
  };
}

}  // namespace carnot
