#include "carnot/kernel/attention/bfloat16_attention.h"

#include <algorithm>
#include <cstring>

#include "carnot/kernel/dispatch.h"
#include "carnot/kernel/gemm/bfloat16_gemm.h"
#include "carnot/kernel/gemm/bfloat16_scratch.h"

namespace carnot::kernel {
namespace {

constexpr int kQueriesAtOnce = 32;

/// Positions whose keys or values are packed at a time where all queries are multiplied at once: what is packed stays
/// in the first-level cache. Where positions are cut changes no bit.
constexpr int kStrip = 256;

/// Rows whose distance is a multiple of a page would crowd into few sets of the first-level cache.
constexpr std::int64_t kRowPadding = 32;

constexpr int kStep = static_cast<int>(kBFloat16Depth);
static_assert(kBFloat16Panel == 2 * kTile && kBFloat16Depth == 2 * kTile && kStrip % kStep == 0,
              "two blocks make a panel of keys, and a step of depth of values");

constexpr std::int64_t kPairOfRows = 2 * kBFloat16Panel;  // of a panel, side by side
constexpr std::int64_t kPairOfKeys = 2 * kTile;           // of a block

thread_local BFloat16Scratch packed_scratch, scores_scratch, weights_scratch, results_scratch;

int whole_steps(int count) { return (count + kStep - 1) / kStep * kStep; }

struct PackedStrip {
  BFloat16* data = nullptr;
  std::int64_t panel = 0;  ///< from a panel to the next
};

/// Keys of the positions [begin, end) as B [dim, positions]. `begin` and `end` are whole steps.
void pack_keys(const AttentionTask<BFloat16>& in, int begin, int end, const PackedStrip& packed) {
  const auto rows = packed.panel / kPairOfRows;
  const int blocks = std::min(end / kTile, static_cast<int>(in.key_blocks.size()));
  for (int b = begin / kTile; b < blocks; ++b) {
    const BFloat16* block = in.key_blocks[b];
    BFloat16* out = packed.data + (b - begin / kTile) / 2 * packed.panel + b % 2 * kPairOfKeys;
    for (int pair = 0; pair < in.dim / 2; ++pair)
      std::memcpy(out + pair * kPairOfRows, block + pair * kPairOfKeys, kPairOfKeys * sizeof(BFloat16));
    for (std::int64_t pair = in.dim / 2; pair < rows; ++pair)
      std::fill_n(out + pair * kPairOfRows, kPairOfKeys, BFloat16{});
  }
}

/// Values of the same positions as B [positions, dim]. Behind the last block are zeros: weight 0 times anything must
/// be 0.
void pack_values(const AttentionTask<BFloat16>& in, int begin, int end, const PackedStrip& packed) {
  const int blocks = static_cast<int>(in.value_blocks.size());
  for (int b = begin / kTile; b < end / kTile; ++b) {
    const BFloat16* block = b < blocks ? in.value_blocks[b] : nullptr;
    BFloat16* out = packed.data + (b * kTile - begin) / 2 * kPairOfRows;
    for (std::int64_t d = 0; d < in.dim; d += kBFloat16Panel, out += packed.panel) {
      const std::int64_t width = std::min(2 * (in.dim - d), kPairOfRows);
      for (int pair = 0; pair < kTile / 2; ++pair) {
        if (block == nullptr) {
          std::fill_n(out + pair * kPairOfRows, width, BFloat16{});
        } else if (width == kPairOfRows) {
          std::memcpy(out + pair * kPairOfRows, block + 2 * (pair * in.dim + d), kPairOfRows * sizeof(BFloat16));
        } else {
          std::copy_n(block + 2 * (pair * in.dim + d), width, out + pair * kPairOfRows);
        }
      }
    }
  }
}

}  // namespace

void attend(const BFloat16Kernels& kernels, const AttentionTask<BFloat16>& in) {
  const int positions = in.first_visible + in.rows - 1, queries = in.rows * in.group;
  const int most = whole_steps(positions), strip = queries <= kQueriesAtOnce ? std::min(kStrip, most) : most;
  const std::int64_t row = most + kRowPadding;
  const std::int64_t size = static_cast<std::int64_t>(whole_steps(in.dim)) * strip;
  const PackedStrip keys{.data = packed_scratch.take<BFloat16>(2 * size),
                         .panel = whole_steps(in.dim) * kBFloat16Panel};
  const PackedStrip values{.data = keys.data + size, .panel = strip * kBFloat16Panel};
  float* scores = scores_scratch.take<float>(kQueriesAtOnce * row);
  BFloat16* weights = weights_scratch.take<BFloat16>(kQueriesAtOnce * row);
  float* results = results_scratch.take<float>(static_cast<std::int64_t>(kQueriesAtOnce) * in.dim);
  for (int first = 0; first < queries; first += kQueriesAtOnce) {
    const int count = std::min(kQueriesAtOnce, queries - first);
    const int padded = whole_steps(in.first_visible + (first + count - 1) / in.group);
    for (int begin = 0; begin < padded; begin += strip) {
      if (first == 0) pack_keys(in, begin, std::min(begin + strip, most), keys);
      multiply_block(kernels,
                     {.rows = count,
                      .columns = std::min(strip, padded - begin),
                      .a = in.queries + static_cast<std::int64_t>(first) * in.dim,
                      .a_row = in.dim,
                      .b = keys.data,
                      .b_panel = keys.panel,
                      .b_is_near = true,
                      .out = {.sums = scores + begin, .row_stride = row}},
                     in.dim);
    }
    float sums[kQueriesAtOnce];
    for (int i = 0; i < count; ++i)
      sums[i] = kernels.exponentials(in.first_visible + (first + i) / in.group, padded, in.scale, scores + i * row,
                                     weights + i * row);
    for (int begin = 0; begin < padded; begin += strip) {
      if (first == 0) pack_values(in, begin, std::min(begin + strip, most), values);
      const int depth = std::min(strip, padded - begin);
      multiply_block(kernels,
                     {.rows = count,
                      .columns = in.dim,
                      .a = weights + begin,
                      .a_row = row,
                      .b = values.data,
                      .b_panel = values.panel,
                      .b_is_near = true,
                      .first = begin == 0,
                      .last = begin + depth == padded,
                      .out = {.sums = results, .row_stride = in.dim}},
                     depth);
    }
    for (int i = 0; i < count; ++i) {
      const int query = first + i;
      kernels.scaled(in.dim, results + static_cast<std::int64_t>(i) * in.dim, 1 / sums[i],
                     in.out + query / in.group * in.out_row + static_cast<std::int64_t>(query % in.group) * in.dim);
    }
  }
}

}  // namespace carnot::kernel
