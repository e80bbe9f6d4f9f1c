// cuda/statistics.cu -- device code: statistics of rows of logits, and the gradient with respect to the logits.
//
// Compiled at run time by NVRTC and, for tests, by the host's compiler (testing/device_emulation.h), with
//   CARNOT_NUMBER            float or double: what logits are and what is computed in
//   CARNOT_ROUND_GRADIENTS   defined: gradients are rounded to bfloat16
//   CARNOT_THREADS           threads of a block, a power of two
//   CARNOT_VARIANT           a namespace for the above
//   CARNOT_KERNEL            how a kernel is declared
// A block works on one row, in an order that the vocabulary's size alone fixes: a row's bits do not depend on the rows
// next to it. Every thread of a block reaches every barrier.
#include "carnot/cuda/statistics_parameters.h"

namespace carnot::cuda::CARNOT_VARIANT {

using Number = CARNOT_NUMBER;
constexpr int kThreads = CARNOT_THREADS;

template <class T>
struct Bits;
template <>
struct Bits<float> {
  using Key = unsigned;
  static constexpr Key kSign = 0x80000000u;
  static constexpr float kLowest = -3.40282347e38f;
  static __device__ Key of(float x) { return __float_as_uint(x); }
  static __device__ float number(Key bits) { return __uint_as_float(bits); }
};
template <>
struct Bits<double> {
  using Key = unsigned long long;
  static constexpr Key kSign = 0x8000000000000000ull;
  static constexpr double kLowest = -1.7976931348623157e308;
  static __device__ Key of(double x) { return static_cast<Key>(__double_as_longlong(x)); }
  static __device__ double number(Key bits) { return __longlong_as_double(static_cast<long long>(bits)); }
};
using Key = Bits<Number>::Key;

// ---- softmax statistics -----------------------------------------------------------------------------------------

// Of some entries x: their maximum m, the sum of e^(x - m), and that of e^(x - m) (x - m). No entries: sum 0.
struct Sums {
  Number maximum, sum, product;
};

__device__ inline Sums no_sums() { return {Bits<Number>::kLowest, 0, 0}; }

// Adds `part`, whose maximum is not larger. What is not a number stays one, by way of the sum.
__device__ inline void add_rescaled(Sums& into, const Sums& part) {
  const Number shift = part.maximum - into.maximum, scale = exp(shift);
  into.sum += part.sum * scale;
  if (scale > 0) into.product += (part.product + part.sum * shift) * scale;
}

__device__ inline Sums merged(const Sums& a, const Sums& b) {
  Sums all{a.maximum > b.maximum ? a.maximum : b.maximum, 0, 0};
  add_rescaled(all, a);
  add_rescaled(all, b);
  return all;
}

__device__ inline void include(Sums& sums, Number x) {
  if (x < Bits<Number>::kLowest) return;  // minus infinity: an entry without probability
  if (x > sums.maximum) {
    const Sums before = sums;
    sums = {x, 0, 0};
    add_rescaled(sums, before);
  }
  const Number d = x - sums.maximum, e = exp(d);
  sums.sum += e;
  if (e > 0) sums.product += e * d;
}

// Merges those of all threads, as a tree over their numbers; every thread gets the result.
__device__ inline Sums merged_over_block(Sums own) {
  __shared__ Sums of_thread[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  of_thread[thread] = own;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) of_thread[thread] = merged(of_thread[thread], of_thread[thread + half]);
  }
  __syncthreads();
  const Sums all = of_thread[0];
  __syncthreads();  // the next call writes
  return all;
}

// H = log sum e^d - sum e^d d / sum e^d: no cancellation against a large logsumexp.
__device__ inline Number entropy_of(const Sums& sums) {
  const Number entropy = log(sums.sum) - sums.product / sums.sum;
  return entropy < 0 ? Number(0) : entropy;
}

// ---- the lowest entries of a row --------------------------------------------------------------------------------

// Numbers as unsigned integers of the same order. Both zeros are one; what is not a number is the largest.
__device__ inline Key key_of(Number x) {
  if (x != x) return ~Key(0);
  const Key bits = Bits<Number>::of(x == 0 ? Number(0) : x);
  return bits & Bits<Number>::kSign ? ~bits : bits | Bits<Number>::kSign;
}
__device__ inline Number number_of(Key key) {
  return Bits<Number>::number(key & Bits<Number>::kSign ? key ^ Bits<Number>::kSign : ~key);
}

struct Selected {
  Key key;     // of the entry with the asked rank
  Index rank;  // among the entries with that key
  Index ties;  // how many have it
};

// The entry of rank `rank` (0: the lowest) by key, among those of [0, n) that `is_candidate` names: eight bits at a
// time, from the highest. Keys have `bits` bits, a multiple of eight.
template <class IsCandidate, class KeyOf>
__device__ Selected select_rank(Index n, Index rank, int bits, IsCandidate is_candidate, KeyOf key) {
  __shared__ unsigned counts[256];
  __shared__ Selected found;
  const int thread = static_cast<int>(threadIdx.x);
  Selected all{0, rank, n};
  Key fixed = 0;  // a mask of the bits that are known
  for (int shift = bits - 8; shift >= 0; shift -= 8) {
    for (int digit = thread; digit < 256; digit += kThreads) counts[digit] = 0;
    __syncthreads();
    for (Index i = thread; i < n; i += kThreads)
      if (is_candidate(i) && (key(i) & fixed) == all.key) atomicAdd(&counts[(key(i) >> shift) & 255], 1u);
    __syncthreads();
    if (thread == 0) {
      int digit = 0;
      Index left = all.rank;
      while (left >= static_cast<Index>(counts[digit])) left -= static_cast<Index>(counts[digit++]);
      found = {all.key | static_cast<Key>(digit) << shift, left, static_cast<Index>(counts[digit])};
    }
    __syncthreads();
    all = found;
    fixed |= static_cast<Key>(255) << shift;
  }
  __syncthreads();
  return all;
}

struct Cut {
  Number threshold;
  Index tie_limit;

  __device__ bool keeps(Number z, Index index) const {
    return !(z < threshold || (z == threshold && index >= tie_limit));
  }
};

template <class Row>
__device__ Cut cut_lowest(Index n, Index removed, Row row) {
  const auto key = [=](Index i) { return key_of(row(i)); };
  const Selected lowest_kept = select_rank(n, removed, 8 * sizeof(Key), [](Index) { return true; }, key);
  const Number threshold = number_of(lowest_kept.key);
  if (lowest_kept.rank == 0) return {threshold, n};  // the same for all threads
  int bits = 8;
  while (n >> bits > 0) bits += 8;
  const auto is_tie = [=](Index i) { return key(i) == lowest_kept.key; };
  const Selected first_removed =
      select_rank(n, lowest_kept.ties - lowest_kept.rank, bits, is_tie, [](Index i) { return static_cast<Key>(i); });
  return {threshold, static_cast<Index>(first_removed.key)};
}

// ---- kernels ----------------------------------------------------------------------------------------------------

CARNOT_KERNEL void __launch_bounds__(kThreads) statistics_forward(StatisticsForward<Number> p) {
  const Index r = blockIdx.x, first = threadIdx.x, n = p.vocabulary;
  const Number* logits = p.logits + r * n;
  const Number inverse = p.inverse_temperature;
  const auto z = [=](Index i) { return logits[i] * inverse; };
  Sums own = no_sums();
  for (Index i = first; i < n; i += kThreads) include(own, z(i));
  const Sums all = merged_over_block(own);
  if (first == 0) {
    const Number logsumexp = all.maximum + log(all.sum);
    p.logsumexp[r] = logsumexp;
    p.entropy[r] = entropy_of(all);
    p.logprob[r] = z(p.targets[r]) - logsumexp;
  }
  if (p.removed == 0) return;
  const Cut cut = cut_lowest(n, p.removed, z);
  Sums kept = no_sums();
  for (Index i = first; i < n; i += kThreads)
    if (cut.keeps(z(i), i)) include(kept, z(i));
  const Sums all_kept = merged_over_block(kept);
  if (first != 0) return;
  p.kept_logsumexp[r] = all_kept.maximum + log(all_kept.sum);
  p.clamped_entropy[r] = entropy_of(all_kept);
  p.threshold[r] = cut.threshold;
  p.tie_limit[r] = cut.tie_limit;
}

#ifdef CARNOT_ROUND_GRADIENTS
using Stored = unsigned short;
// To the nearest bfloat16, halfway to the even one.
__device__ inline Stored stored(float x) {
  if (x != x) return 0x7FC0;
  const unsigned bits = __float_as_uint(x);
  return static_cast<Stored>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}
#else
using Stored = Number;
__device__ inline Stored stored(Number x) { return x; }
#endif

CARNOT_KERNEL void __launch_bounds__(kThreads) statistics_backward(StatisticsBackward<Number, Stored> p) {
  const Index r = blockIdx.x, n = p.vocabulary;
  const Number* logits = p.logits + r * n;
  Stored* of_logits = p.of_logits + r * n;
  const Number inverse = p.inverse_temperature, logsumexp = p.logsumexp[r], entropy = p.entropy[r];
  const Number through_p = (p.g_logsumexp[r] - p.g_logprob[r]) * inverse, through_entropy = p.g_entropy[r] * inverse;
  const Number of_target = p.g_logprob[r] * inverse;
  const Index target = p.targets[r];
  const bool clamped = p.removed > 0;
  const Cut cut = clamped ? Cut{p.threshold[r], p.tie_limit[r]} : Cut{0, 0};
  // q = p sum p / sum of kept p: one exponential serves both.
  const Number shift = clamped ? logsumexp - p.kept_logsumexp[r] : Number(0);
  const Number kept_entropy = clamped ? p.clamped_entropy[r] + shift : Number(0);
  const Number through_kept = clamped ? p.g_clamped_entropy[r] * inverse * exp(shift) : Number(0);
  for (Index i = threadIdx.x; i < n; i += kThreads) {
    const Number z = logits[i] * inverse, log_p = z - logsumexp, probability = exp(log_p);
    Number gradient = 0;
    if (!(probability == 0)) {
      gradient = probability * (through_p - through_entropy * (log_p + entropy));
      if (clamped && cut.keeps(z, i)) gradient -= probability * (log_p + kept_entropy) * through_kept;
    }
    if (i == target) gradient += of_target;
    of_logits[i] = stored(gradient);
  }
}

}  // namespace carnot::cuda::CARNOT_VARIANT
