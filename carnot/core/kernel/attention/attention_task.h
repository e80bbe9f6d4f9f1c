// kernel/attention/attention_task.h -- one task of attention: some queries of one key-value head, and the blocks that
// they see.
//
// Queries come from successive rows of a sequence, or from several sequences that share blocks: a shared block is then
// read once for all of them. Each sum runs over a query's own positions from the first on. Neither the other queries
// nor the boundaries of ranges change a bit.
#pragma once

#include <span>

#include "carnot/core/kernel/bfloat16.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/gemm/bfloat16_kernels.h"

namespace carnot::kernel {

/// Queries that are computed together; a task of several sequences has no more.
inline constexpr int kQueriesAtOnce = 32;

/// Ranges that several sequences share begin and end at multiples of this many blocks.
inline constexpr int kSharedStep = kBlocksOfRun;

/// Blocks for `positions` positions, the last one possibly partial.
constexpr int tiles_of(int positions) { return (positions + kTile - 1) / kTile; }

template <class S>
struct AttentionQuery {
  int first = 0;  ///< it sees positions [first, visible)
  int visible = 1;
  S* out = nullptr;  ///< [dim]
};

/// Blocks [begin, end) of the sequences of the queries [first, last). Their addresses are listed from `listed` on.
struct AttentionRange {
  int first = 0, last = 0;
  int begin = 0, end = 0;
  int listed = 0;
};

/// Ranges cover each query's positions once, in ascending order. A range of which a query sees only a part must be the
/// query's last and belong to one sequence, whose later queries see positions further on; if `first` is above 0, it is
/// the only one.
template <class S>
struct AttentionTask {
  int dim = 1;
  Computed<S> scale = 1;
  const S* values_of_queries = nullptr;  ///< [queries, dim]
  std::span<const AttentionQuery<S>> queries{};
  std::span<const AttentionRange> ranges{};
  std::span<const S* const> key_blocks{};  ///< of this head, by AttentionRange::listed
  std::span<const S* const> value_blocks{};
};

/// out = sum of w_j value_j / sum of w_j, w_j = exp(scale (score_j - maximum)).
template <class T>
void attend(const AttentionTask<T>& in);

/// The same with two matrix products of a kernel set (bfloat16_attention.cpp). Scores and sums are float32; each weight
/// is rounded to bfloat16 before both sums, and the result once.
void attend(const BFloat16Kernels& kernels, const AttentionTask<BFloat16>& in);

}  // namespace carnot::kernel
