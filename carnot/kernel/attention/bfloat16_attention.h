// kernel/attention/bfloat16_attention.h -- attention of some bfloat16 rows as two matrix products of a kernel set:
// queries times keys, and weights times values.
//
// Both add in the set's fixed order (gemm/bfloat16_kernels.h), over the head's numbers and over positions from the
// first on; a position that a query does not see has weight 0, which changes no sum. So a query's result is the same
// alone and beside others, whatever `rows` it comes in.
#pragma once

#include <cstdint>
#include <span>

#include "carnot/kernel/bfloat16.h"
#include "carnot/kernel/gemm/bfloat16_kernels.h"

namespace carnot::kernel {

/// Successive rows of one sequence, by one head of keys and values, which are stored as S.
template <class S>
struct AttentionTask {
  int rows = 0;
  int group = 1;          ///< queries of a row
  int dim = 1;            ///< even
  int first_visible = 1;  ///< positions that the first row sees; each row sees one more than the row before
  Computed<S> scale = 1;
  const S* queries = nullptr;                ///< [rows, group, dim]
  std::span<const S* const> key_blocks{};    ///< of this head, up to what the last row sees
  std::span<const S* const> value_blocks{};  ///< as attention.h has them
  S* out = nullptr;                          ///< [rows, group, dim]
  std::int64_t out_row = 0;                  ///< from a row to the next
};

/// out = sum of w_j value_j / sum of w_j, w_j = exp(scale (score_j - the largest)). Scores and sums are float32; each
/// weight is rounded to bfloat16 before both sums, and the result once.
void attend(const BFloat16Kernels& kernels, const AttentionTask<BFloat16>& in);

}  // namespace carnot::kernel
