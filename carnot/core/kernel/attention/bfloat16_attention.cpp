// Attention in bfloat16 as two matrix products of a kernel set: queries times keys, and weights times values.
//
// Both add in the set's fixed order (gemm/bfloat16_kernels.h), over the head's dimensions and over positions from the
// first on; a position that a query does not see has weight 0, which changes no sum. So a query's result is the same
// alone and together with others, in any task.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "carnot/core/kernel/attention/attention_task.h"
#include "carnot/core/kernel/gemm/bfloat16_gemm.h"
#include "carnot/core/kernel/gemm/bfloat16_scratch.h"

namespace carnot::kernel {
namespace {

/// Blocks whose keys or values are multiplied at a time: they, or their packed copy, stay in the first-level cache. The
/// division changes no bit.
constexpr int kBlocksAtOnce = 16;

/// Rows a multiple of a page apart would compete for few sets of the first-level cache.
constexpr std::int64_t kRowPadding = 32;

constexpr int kStep = static_cast<int>(kBFloat16Depth);
static_assert(kBFloat16Panel == 2 * kTile && kStep == kSharedStep * kTile && kBlocksAtOnce % kSharedStep == 0,
              "two blocks make a panel of keys, and a step of depth of values");
static_assert(kRowPadding >= kQueriesAtOnce);

constexpr std::int64_t kPairOfRows = 2 * kBFloat16Panel;  // of a panel, side by side
constexpr std::int64_t kPairOfKeys = 2 * kTile;           // of a block

thread_local BFloat16Scratch packed_scratch, scores_scratch, weights_scratch, results_scratch, parts_scratch,
    wide_scratch;

int whole_steps(int count) { return (count + kStep - 1) / kStep * kStep; }

/// The position at which the query's sums begin.
int first_step(const AttentionQuery<BFloat16>& query) { return query.first / kStep * kStep; }

struct PackedStrip {
  BFloat16* data = nullptr;
  std::int64_t panel = 0;  ///< distance between panels
};

using BlockList = std::span<const BFloat16* const>;

/// Keys of the blocks as B [dim, positions].
void pack_keys(BlockList blocks, int dim, const PackedStrip& packed) {
  const auto rows = packed.panel / kPairOfRows;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    BFloat16* out = packed.data + static_cast<std::int64_t>(b / 2) * packed.panel + b % 2 * kPairOfKeys;
    for (int pair = 0; pair < dim / 2; ++pair)
      std::memcpy(out + pair * kPairOfRows, blocks[b] + pair * kPairOfKeys, kPairOfKeys * sizeof(BFloat16));
    for (std::int64_t pair = dim / 2; pair < rows; ++pair)
      std::fill_n(out + pair * kPairOfRows, kPairOfKeys, BFloat16{});
  }
}

/// Values of the blocks as B [positions, dim]. Past the last block, the step is filled with zeros: weight 0 times
/// anything must be 0.
void pack_values(BlockList blocks, int dim, const PackedStrip& packed) {
  for (std::size_t b = 0; b < (blocks.size() + 1) / 2 * 2; ++b) {
    const BFloat16* block = b < blocks.size() ? blocks[b] : nullptr;
    BFloat16* out = packed.data + static_cast<std::int64_t>(b) * kTile / 2 * kPairOfRows;
    for (std::int64_t d = 0; d < dim; d += kBFloat16Panel, out += packed.panel) {
      const std::int64_t width = std::min(2 * (dim - d), kPairOfRows);
      for (int pair = 0; pair < kTile / 2; ++pair) {
        if (block == nullptr) {
          std::fill_n(out + pair * kPairOfRows, width, BFloat16{});
        } else if (width == kPairOfRows) {
          std::memcpy(out + pair * kPairOfRows, block + 2 * (pair * dim + d), kPairOfRows * sizeof(BFloat16));
        } else {
          std::copy_n(block + 2 * (pair * dim + d), width, out + pair * kPairOfRows);
        }
      }
    }
  }
}

/// Some queries of the pass, with blocks that all of them see or with the last blocks of one sequence.
struct Stretch {
  int first = 0, count = 0;                    ///< queries, counted from the pass's first
  int begin = 0;                               ///< the first block's number
  BlockList keys{}, values{};                  ///< of the blocks to multiply
  BlockList all_keys, all_values;              ///< of the blocks to pack: those and others that later queries see
  bool first_seen = false, last_seen = false;  ///< these queries see nothing before it, or nothing after it
};

/// The queries that are computed together, and their results.
class Pass {
 public:
  Pass(const BFloat16Kernels& kernels, const AttentionTask<BFloat16>& in) : kernels_(kernels), in_(in) {
    origin_ = in.ranges.front().begin;
    for (const auto& query : in.queries) most_ = std::max(most_, whole_steps(query.visible) - origin_ * kTile);
    in_place_ = kernels.scores != nullptr && in.dim % kTile == 0;
    // Packed copies for many queries are kept for all of them.
    const bool all_see_the_first = in.queries.back().first == 0;
    pack_once_ = !in_place_ && all_see_the_first && static_cast<int>(in.queries.size()) > kQueriesAtOnce;
    strip_ = pack_once_ ? most_ / kTile : std::min(kBlocksAtOnce, most_ / kTile);
    row_ = most_ + kRowPadding;
    scores_ = scores_scratch.take<float>(kQueriesAtOnce * row_);
    weights_ = weights_scratch.take<BFloat16>(kQueriesAtOnce * row_);
    results_ = results_scratch.take<float>(std::int64_t{kQueriesAtOnce} * in.dim);
    const std::int64_t padded_dim = whole_steps(in.dim), positions = std::int64_t{strip_} * kTile;
    if (in_place_) {
      wide_ = kernels.widens
                  ? wide_scratch.take<float>(kQueriesAtOnce * (std::max(padded_dim, positions) + kWidenedPadding))
                  : nullptr;
      return;
    }
    parts_ = parts_scratch.take<float>(padded_dim * kQueriesAtOnce);
    keys_ = {.data = packed_scratch.take<BFloat16>(2 * padded_dim * positions), .panel = padded_dim * kBFloat16Panel};
    values_ = {.data = keys_.data + padded_dim * positions, .panel = positions * kBFloat16Panel};
  }

  void run(int first) {
    first_ = first;
    last_ = std::min(first + kQueriesAtOnce, static_cast<int>(in_.queries.size()));
    for_each_stretch([&](const Stretch& stretch) { score(stretch); });
    float sums[kQueriesAtOnce];
    for (int i = 0; i < last_ - first; ++i) {
      // As far, to both sides, as any query in the same product sees.
      const AttentionQuery<BFloat16>& query = in_.queries[first + i];
      const int begin = first_step(query), padded = whole_steps(query.visible + kQueriesAtOnce - 1);
      const std::int64_t at = i * row_ + begin - origin_ * kTile;
      std::fill_n(scores_ + at, query.first - begin, -INFINITY);
      sums[i] = kernels_.exponentials(query.visible - begin, padded - begin, in_.scale, scores_ + at, weights_ + at);
      const int before = begin - first_step(in_.queries[first]);
      if (before > 0) std::fill_n(weights_ + at - before, before, BFloat16{});
    }
    for_each_stretch([&](const Stretch& stretch) { weigh(stretch); });
    for (int i = 0; i < last_ - first; ++i)
      kernels_.scaled(in_.dim, results_ + std::int64_t{i} * in_.dim, 1 / sums[i], in_.queries[first + i].out);
  }

 private:
  template <class Use>
  void for_each_stretch(const Use& use) const {
    for (const AttentionRange& range : in_.ranges) {
      const int begin = std::max(first_, range.first), end = std::min(last_, range.last);
      if (begin >= end) continue;
      const int seen = tiles_of(in_.queries[end - 1].visible), needed = std::min(range.end, seen);
      const int first_block = std::max(range.begin, first_step(in_.queries[begin]) / kTile);
      for (int block = first_block; block < needed; block += strip_) {
        const auto listed = static_cast<std::size_t>(range.listed + block - range.begin);
        const auto count = static_cast<std::size_t>(std::min(strip_, needed - block));
        const auto all = static_cast<std::size_t>(std::min(strip_, range.end - block));
        use(Stretch{.first = begin - first_,
                    .count = end - begin,
                    .begin = block,
                    .keys = in_.key_blocks.subspan(listed, count),
                    .values = in_.value_blocks.subspan(listed, count),
                    .all_keys = in_.key_blocks.subspan(listed, all),
                    .all_values = in_.value_blocks.subspan(listed, all),
                    .first_seen = block * kTile == first_step(in_.queries[begin]),
                    .last_seen = block + static_cast<int>(count) == seen});
      }
    }
  }

  bool packs() const { return !pack_once_ || first_ == 0; }

  void score(const Stretch& stretch) {
    const BFloat16* queries = in_.values_of_queries + std::int64_t{first_ + stretch.first} * in_.dim;
    float* out = scores_ + stretch.first * row_ + std::int64_t{stretch.begin - origin_} * kTile;
    if (in_place_) {
      kernels_.scores({.rows = stretch.count,
                       .dim = in_.dim,
                       .count = static_cast<int>(stretch.keys.size()),
                       .blocks = stretch.keys.data(),
                       .a = queries,
                       .a_row = in_.dim,
                       .widened = wide_,
                       .out = out,
                       .out_row = row_});
      return;
    }
    if (packs()) pack_keys(stretch.all_keys, in_.dim, keys_);
    multiply_block(kernels_,
                   {.rows = stretch.count,
                    .columns = whole_steps(static_cast<int>(stretch.keys.size()) * kTile),
                    .a = queries,
                    .a_row = in_.dim,
                    .b = keys_.data,
                    .b_panel = keys_.panel,
                    .b_is_near = true,
                    .out = {.sums = out, .row_stride = row_}},
                   in_.dim);
  }

  void weigh(const Stretch& stretch) {
    const BFloat16* weights = weights_ + stretch.first * row_ + std::int64_t{stretch.begin - origin_} * kTile;
    float* out = results_ + std::int64_t{stretch.first} * in_.dim;
    if (in_place_) {
      kernels_.weighted_values({.rows = stretch.count,
                                .dim = in_.dim,
                                .count = static_cast<int>(stretch.values.size()),
                                .blocks = stretch.values.data(),
                                .a = weights,
                                .a_row = row_,
                                .widened = wide_,
                                .out = out,
                                .out_row = in_.dim,
                                .go_on = !stretch.first_seen});
      return;
    }
    if (packs()) pack_values(stretch.all_values, in_.dim, values_);
    // Partial sums belong to each query, whichever queries are multiplied with it.
    const bool in_parts = !(stretch.first_seen && stretch.last_seen);
    multiply_block(kernels_,
                   {.rows = stretch.count,
                    .columns = in_.dim,
                    .a = weights,
                    .a_row = row_,
                    .b = values_.data,
                    .b_panel = values_.panel,
                    .b_is_near = true,
                    .sums = in_parts ? parts_ + stretch.first * kBFloat16Panel : nullptr,
                    .sums_panel = kQueriesAtOnce * kBFloat16Panel,
                    .first = stretch.first_seen,
                    .last = stretch.last_seen,
                    .out = {.sums = out, .row_stride = in_.dim}},
                   whole_steps(static_cast<int>(stretch.values.size()) * kTile));
  }

  const BFloat16Kernels& kernels_;
  const AttentionTask<BFloat16>& in_;
  bool in_place_ = false, pack_once_ = false;
  int origin_ = 0;            // the first block of the ranges
  int most_ = 0, strip_ = 0;  // positions from there on; blocks
  int first_ = 0, last_ = 0;
  std::int64_t row_ = 0;
  float *scores_ = nullptr, *results_ = nullptr, *parts_ = nullptr, *wide_ = nullptr;
  BFloat16* weights_ = nullptr;
  PackedStrip keys_{}, values_{};
};

}  // namespace

void attend(const BFloat16Kernels& kernels, const AttentionTask<BFloat16>& in) {
  Pass pass(kernels, in);
  for (int first = 0; first < static_cast<int>(in.queries.size()); first += kQueriesAtOnce) pass.run(first);
}

}  // namespace carnot::kernel
