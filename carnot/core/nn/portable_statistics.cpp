#include "carnot/core/nn/portable_statistics.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "carnot/core/nn/statistics_passes.h"

namespace carnot {
namespace {

/// One row per token: threshold and tie_limit as in kernel::Cut, [rows, 1].
struct Cuts {
  at::Tensor threshold_R1, tie_limit_R1;

  at::Tensor removed(const at::Tensor& logits_RV) const {
    const at::Tensor index_V = at::arange(logits_RV.size(1), tie_limit_R1.options());
    return (logits_RV < threshold_R1).logical_or((logits_RV == threshold_R1).logical_and(index_V >= tie_limit_R1));
  }
};

Cuts cut_lowest(const at::Tensor& logits_RV, std::int64_t removed) {
  const std::int64_t vocabulary = logits_RV.size(1);
  const at::Tensor threshold_R1 = std::get<0>(at::kthvalue(logits_RV, removed + 1, -1, true));
  const at::Tensor equal_RV = logits_RV == threshold_R1;
  const at::Tensor kept_ties_R1 = (logits_RV <= threshold_R1).sum(-1, true) - removed;
  at::Tensor tie_limit_R1 = at::full_like(kept_ties_R1, vocabulary);
  if ((equal_RV.sum(-1, true) > kept_ties_R1).any().item<bool>()) {
    // Just past the last of the equal entries that are kept.
    const at::Tensor counted_RV = at::cumsum(equal_RV, -1, at::kInt);
    tie_limit_R1 = (counted_RV < kept_ties_R1).sum(-1, true) + 1;
  }
  return {threshold_R1, tie_limit_R1};
}

}  // namespace

void portable_statistics(const StatisticsInputs& inputs, StatisticsOutputs& out) {
  for_strips(inputs, [&](std::int64_t first, std::int64_t rows) {
    const auto part = [&](const at::Tensor& x_T) { return x_T.narrow(0, first, rows); };
    const at::Tensor logits =
        at::matmul(part(inputs.hidden_TH), inputs.head_VH.t()).to(out.statistics.logprob_T.scalar_type()) /
        inputs.temperature;
    const at::Tensor logsumexp = logits.logsumexp(-1);
    const at::Tensor log_p = logits - logsumexp.unsqueeze(-1);
    part(out.statistics.logsumexp_T).copy_(logsumexp);
    part(out.statistics.entropy_T).copy_(-(log_p.exp() * log_p).sum(-1));
    part(out.statistics.logprob_T).copy_(log_p.gather(-1, part(inputs.targets_T).unsqueeze(-1)).squeeze(-1));
    if (inputs.removed == 0) return;
    const Cuts cuts = cut_lowest(logits, inputs.removed);
    const at::Tensor removed = cuts.removed(logits);
    const at::Tensor kept_logsumexp = logits.masked_fill(removed, -INFINITY).logsumexp(-1);
    const at::Tensor log_q = logits - kept_logsumexp.unsqueeze(-1);
    part(out.statistics.clamped_entropy_T).copy_(-(log_q.exp() * log_q).masked_fill(removed, 0).sum(-1));
    part(out.kept_logsumexp_T).copy_(kept_logsumexp);
    part(out.threshold_T).copy_(cuts.threshold_R1.squeeze(-1));
    part(out.tie_limit_T).copy_(cuts.tie_limit_R1.squeeze(-1));
  });
}

InputGradients portable_statistics_backward(const StatisticsInputs& inputs, const StatisticsOutputs& saved,
                                            const StatisticsGradients& gradients) {
  const TokenStatistics& statistics = saved.statistics;
  const at::Tensor& head = inputs.head_VH;
  const auto wide = statistics.logsumexp_T.scalar_type();
  at::Tensor dhidden = at::empty_like(inputs.hidden_TH), dhead;
  if (gradients.of_head) dhead = at::zeros_like(head, head.options().dtype(wide));
  for_strips(inputs, [&](std::int64_t first, std::int64_t rows) {
    const auto part = [&](const at::Tensor& x_T) { return x_T.narrow(0, first, rows).unsqueeze(-1); };
    const at::Tensor x = inputs.hidden_TH.narrow(0, first, rows);
    const at::Tensor logits = at::matmul(x, head.t()).to(wide) / inputs.temperature;
    const at::Tensor log_p = logits - part(statistics.logsumexp_T);
    at::Tensor dlogits = log_p.exp() * (part(gradients.logsumexp_T) - part(gradients.logprob_T) -
                                        part(gradients.entropy_T) * (log_p + part(statistics.entropy_T)));
    dlogits.scatter_add_(-1, part(inputs.targets_T), part(gradients.logprob_T));
    if (inputs.removed > 0) {
      const Cuts cuts{part(saved.threshold_T), part(saved.tie_limit_T)};
      const at::Tensor log_q = logits - part(saved.kept_logsumexp_T);
      const at::Tensor slope =
          log_q.exp() * (log_q + part(statistics.clamped_entropy_T)) * part(gradients.clamped_entropy_T);
      dlogits -= slope.masked_fill(cuts.removed(logits), 0);
    }
    dlogits = dlogits / inputs.temperature;
    dhidden.narrow(0, first, rows).copy_(at::matmul(dlogits.to(head.scalar_type()), head));
    if (gradients.of_head) dhead += at::matmul(dlogits.t(), x.to(wide));
  });
  return {dhidden, dhead};
}

}  // namespace carnot
