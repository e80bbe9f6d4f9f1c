// cuda/statistics_parameters.h -- what the kernels of statistics.cu take: pointers into device memory and sizes.
//
// Read by NVRTC and by the compiler of the host, so it includes nothing. T: what numbers are computed in (float,
// double); S: what gradients are stored as (T, or bfloat16 as unsigned short). Matrices are rows of `vocabulary`
// numbers without gaps; every other pointer has a number for each row.
#pragma once

namespace carnot::cuda {

using Index = long;
static_assert(sizeof(Index) == 8, "64 bits, as in LibTorch's tensors");

/// z = logit * inverse_temperature. Of each row's softmax over z: log-probability of the target, entropy, logsumexp.
/// With `removed` > 0 also of what is left when that many lowest entries are removed, of equal ones those with the
/// larger index first: x stays unless z < threshold, or z == threshold and its index is at least tie_limit.
template <class T>
struct StatisticsForward {
  const T* logits = nullptr;
  Index rows = 0, vocabulary = 0;
  T inverse_temperature = 1;
  const Index* targets = nullptr;
  T *logprob = nullptr, *entropy = nullptr, *logsumexp = nullptr;
  Index removed = 0;
  T *clamped_entropy = nullptr, *kept_logsumexp = nullptr, *threshold = nullptr;  ///< unused where nothing is removed
  Index* tie_limit = nullptr;
};

/// The gradient with respect to the logits, from the gradients g_* with respect to the statistics. `of_logits` may be
/// the logits themselves where S is T.
template <class T, class S>
struct StatisticsBackward {
  const T* logits = nullptr;
  Index rows = 0, vocabulary = 0;
  T inverse_temperature = 1;
  const Index* targets = nullptr;
  const T *entropy = nullptr, *logsumexp = nullptr;
  const T *g_logprob = nullptr, *g_entropy = nullptr, *g_logsumexp = nullptr;
  Index removed = 0;
  const T *clamped_entropy = nullptr, *kept_logsumexp = nullptr, *threshold = nullptr, *g_clamped_entropy = nullptr;
  const Index* tie_limit = nullptr;  ///< this and the line before: unused where nothing is removed
  S* of_logits = nullptr;
};

}  // namespace carnot::cuda
