// nn/token_gradients.h -- shared by the backward passes of token_statistics: rows of logits as tasks, and the inputs of
// one token's gradient. Internal to the room.
#pragma once

#include <algorithm>
#include <cstdint>

#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/nn/statistics_passes.h"

namespace carnot {

/// Calls body(row) for every row of logits, a few rows per task.
template <class Body>
void for_logit_rows(std::int64_t rows, Body body) {
  constexpr std::int64_t kRowsOfTask = 8;
  kernel_pool().run((rows + kRowsOfTask - 1) / kRowsOfTask, [&](std::int64_t task) {
    for (std::int64_t r = task * kRowsOfTask; r < std::min(rows, (task + 1) * kRowsOfTask); ++r) body(r);
  });
}

template <class T>
T* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<T>() : nullptr;
}

/// The inputs of one token's gradient.
template <class T>
struct TokenGradients {
  TokenGradients(const StatisticsOutputs& saved, const StatisticsGradients& gradients)
      : logsumexp(saved.statistics.logsumexp_T.data_ptr<T>()),
        entropy(saved.statistics.entropy_T.data_ptr<T>()),
        clamped_entropy(data_or_null<T>(saved.statistics.clamped_entropy_T)),
        kept_logsumexp(data_or_null<T>(saved.kept_logsumexp_T)),
        threshold(data_or_null<T>(saved.threshold_T)),
        tie_limit(data_or_null<std::int64_t>(saved.tie_limit_T)),
        g_logprob(gradients.logprob_T.data_ptr<T>()),
        g_entropy(gradients.entropy_T.data_ptr<T>()),
        g_logsumexp(gradients.logsumexp_T.data_ptr<T>()),
        g_clamped_entropy(data_or_null<T>(gradients.clamped_entropy_T)) {}

  kernel::RowGradient<T> row(std::int64_t t) const {
    return {.logsumexp = logsumexp[t],
            .entropy = entropy[t],
            .g_logprob = g_logprob[t],
            .g_entropy = g_entropy[t],
            .g_logsumexp = g_logsumexp[t]};
  }
  kernel::KeptGradient<T> kept(std::int64_t t) const {
    return {.cut = {.threshold = threshold[t], .tie_limit = tie_limit[t]},
            .logsumexp = kept_logsumexp[t],
            .entropy = clamped_entropy[t],
            .g_entropy = g_clamped_entropy[t]};
  }

  const T *logsumexp, *entropy, *clamped_entropy, *kept_logsumexp, *threshold;
  const std::int64_t* tie_limit;
  const T *g_logprob, *g_entropy, *g_logsumexp, *g_clamped_entropy;
};

}  // namespace carnot
