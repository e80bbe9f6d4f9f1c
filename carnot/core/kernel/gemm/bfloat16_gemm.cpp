#include "carnot/core/kernel/gemm/bfloat16_gemm.h"

#include <algorithm>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/gemm/bfloat16_scratch.h"

namespace carnot::kernel {
namespace {

constexpr std::int64_t kDepthChunk = 1024;

std::int64_t bfloat16_blocks(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

thread_local BFloat16Scratch sums_scratch, widened_scratch, tail_scratch, used_scratch;

/// Rows of a block: all blocks have about the same size, so that no last block of few rows reads all of B again.
std::int64_t rows_of_block(const BFloat16Kernels& kernels, std::int64_t rows, std::int64_t most) {
  const std::int64_t blocks = bfloat16_blocks(rows, most);
  return bfloat16_blocks(bfloat16_blocks(rows, blocks), kernels.row_tile) * kernels.row_tile;
}

/// Panels of a task: fewer if there are few tasks, so that no thread waits long for the last one. The division into
/// tasks changes no bit.
std::int64_t panels_of_task(const BFloat16Kernels& kernels, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kTasksPerThread = 8;
  const int threads = kernel_pool().threads();
  const std::int64_t row_blocks = bfloat16_blocks(rows, kernels.row_block);
  // Few rows stay in the cache with any number of panels, and each panel of a task is prefetched during the previous
  // one.
  constexpr std::int64_t kPanelsOfFewRows = 8;
  std::int64_t panels = rows <= kernels.few_rows ? kPanelsOfFewRows : kernels.panel_group;
  while (threads > 1 && panels > 1 &&
         row_blocks * bfloat16_blocks(columns, panels * kBFloat16Panel) < threads * kTasksPerThread)
    panels /= 2;
  return panels;
}

/// Rows of a block whose result is used at once and fits into the second-level cache together with A's rows: fewer if
/// there are few tasks.
std::int64_t rows_of_used_block(const BFloat16Kernels& kernels, std::int64_t rows, std::int64_t column_blocks) {
  constexpr std::int64_t kMostRows = 128, kLeastRows = 16, kTasksPerThread = 4;
  std::int64_t block = kernels.row_block > kMostRows ? kernels.row_block / 2 : kernels.row_block;
  while (block > kLeastRows && column_blocks * bfloat16_blocks(rows, block) < kernel_pool().threads() * kTasksPerThread)
    block /= 2;
  return rows_of_block(kernels, rows, block);
}

typedef std::uint16_t Eight __attribute__((vector_size(16)));
typedef std::uint32_t FourPairs __attribute__((vector_size(16)));

/// A depth step of a whole panel: pair k of column j goes to place 32 k + j. Four columns by four pairs are transposed
/// at a time.
void pack_whole_step(std::span<const BFloat16* const> columns, std::int64_t first, BFloat16* out) {
  for (std::size_t j = 0; j < columns.size(); j += 4) {
    for (std::int64_t k = 0; k < kBFloat16Depth; k += 8) {
      FourPairs in[4];
      for (int i = 0; i < 4; ++i)
        __builtin_memcpy(&in[i], columns[j + static_cast<std::size_t>(i)] + first + k, sizeof(FourPairs));
      const FourPairs low01 = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5);
      const FourPairs low23 = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
      const FourPairs high01 = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
      const FourPairs high23 = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
      const FourPairs turned[4] = {
          __builtin_shufflevector(low01, low23, 0, 1, 4, 5), __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
          __builtin_shufflevector(high01, high23, 0, 1, 4, 5), __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
      for (int i = 0; i < 4; ++i)
        __builtin_memcpy(out + (k + 2 * i) * kBFloat16Panel + 2 * j, &turned[i], sizeof(FourPairs));
    }
  }
}

/// The same for fewer columns, with `count` numbers left. The rest is zeros.
void pack_part_of_step(std::span<const BFloat16* const> columns, std::int64_t first, std::int64_t count,
                       BFloat16* out) {
  std::fill(out, out + kBFloat16Depth * kBFloat16Panel, BFloat16{});
  for (std::size_t j = 0; j < columns.size(); ++j)
    for (std::int64_t k = 0; k < count; ++k)
      out[k / 2 * 2 * kBFloat16Panel + 2 * static_cast<std::int64_t>(j) + k % 2] = columns[j][first + k];
}

/// Interleaves two rows of a panel: out[2 j] from the even one, out[2 j + 1] from the odd one.
void interleave_panel(const BFloat16* even, const BFloat16* odd, BFloat16* out) {
  for (std::int64_t j = 0; j < kBFloat16Panel; j += 8) {
    Eight a, b;
    __builtin_memcpy(&a, even + j, sizeof(Eight));
    __builtin_memcpy(&b, odd + j, sizeof(Eight));
    const Eight low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    const Eight high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    __builtin_memcpy(out + 2 * j, &low, sizeof(Eight));
    __builtin_memcpy(out + 2 * j + 8, &high, sizeof(Eight));
  }
}

/// Start addresses of the rows of several matrices, in order.
std::vector<const BFloat16*> row_starts(std::span<const BFloat16Rows> matrices) {
  std::vector<const BFloat16*> starts;
  for (const BFloat16Rows& matrix : matrices)
    for (std::int64_t i = 0; i < matrix.rows; ++i) starts.push_back(matrix.data + i * matrix.row_stride);
  return starts;
}

}  // namespace

void PackedBFloat16::Free::operator()(BFloat16* p) const {
  if (!borrows) free_aligned(p);
}

void PackedBFloat16::resize(std::int64_t depth, std::int64_t columns) {
  depth_ = depth;
  padded_depth_ = std::max<std::int64_t>(1, bfloat16_blocks(depth, kBFloat16Depth)) * kBFloat16Depth;
  columns_ = columns;
  const std::int64_t size = std::max<std::int64_t>(1, bfloat16_blocks(columns, kBFloat16Panel)) * panel_size();
  if (size <= capacity_) return;
  data_.reset();  // the old and the new never exist together
  const auto bytes = static_cast<std::size_t>(size) * sizeof(BFloat16);
  data_ = Memory(static_cast<BFloat16*>(allocate_aligned(bytes)), Free{.borrows = false});
  CARNOT_CHECK(data_ != nullptr, "out of memory for a packed matrix");
  capacity_ = size;
}

PackedBFloat16 PackedBFloat16::view_of_columns(std::int64_t first, std::int64_t count) const {
  CARNOT_CHECK_EQ(first % kBFloat16Panel, 0);
  CARNOT_CHECK_LE(first + count, columns_);
  CARNOT_CHECK(count % kBFloat16Panel == 0 || first + count == columns_, "a panel would be cut");
  PackedBFloat16 view;
  view.data_ = Memory(data_.get() + first / kBFloat16Panel * panel_size(), Free{.borrows = true});
  view.depth_ = depth_;
  view.padded_depth_ = padded_depth_;
  view.columns_ = count;
  return view;
}

void PackedBFloat16::pack_transposed(std::span<const BFloat16Rows> weights, std::int64_t depth) {
  const std::vector<const BFloat16*> starts = row_starts(weights);
  resize(depth, static_cast<std::int64_t>(starts.size()));
  kernel_pool().run(bfloat16_blocks(columns_, kBFloat16Panel), [&](std::int64_t p) {
    const std::int64_t first = p * kBFloat16Panel, width = std::min(kBFloat16Panel, columns_ - first);
    const auto columns = std::span(starts).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(width));
    BFloat16* out = data_.get() + p * panel_size();
    // Part of the panel at a time, so that the output stays in the first-level cache.
    for (std::int64_t k = 0; k < padded_depth_; k += kBFloat16Depth, out += kBFloat16Depth * kBFloat16Panel) {
      if (width == kBFloat16Panel && k + kBFloat16Depth <= depth_) {
        pack_whole_step(columns, k, out);
      } else {
        pack_part_of_step(columns, k, std::min(kBFloat16Depth, depth_ - k), out);
      }
    }
  });
}

void PackedBFloat16::pack(std::span<const BFloat16Rows> matrices, std::int64_t columns) {
  const std::vector<const BFloat16*> starts = row_starts(matrices);
  resize(static_cast<std::int64_t>(starts.size()), columns);
  static constexpr BFloat16 kZeros[kBFloat16Panel] = {};
  kernel_pool().run(bfloat16_blocks(columns_, kBFloat16Panel), [&](std::int64_t p) {
    const std::int64_t first = p * kBFloat16Panel;
    const std::int64_t width = std::min(kBFloat16Panel, columns_ - first);
    BFloat16* out = data_.get() + p * panel_size();
    for (std::int64_t k = 0; k < padded_depth_; k += 2, out += 2 * kBFloat16Panel) {
      const BFloat16* even = k < depth_ ? starts[k] + first : kZeros;
      const BFloat16* odd = k + 1 < depth_ ? starts[k + 1] + first : kZeros;
      if (width == kBFloat16Panel) {
        interleave_panel(even, odd, out);
        continue;
      }
      std::fill(out, out + 2 * kBFloat16Panel, BFloat16{});
      for (std::int64_t j = 0; j < width; ++j) {
        out[2 * j] = even[j];
        out[2 * j + 1] = odd[j];
      }
    }
  });
}

void multiply_block(const BFloat16Kernels& kernels, BFloat16Block block, std::int64_t depth) {
  const std::int64_t panels = bfloat16_blocks(block.columns, kBFloat16Panel);
  const std::int64_t whole = depth / kBFloat16Depth * kBFloat16Depth;
  const bool first = block.first, last = block.last;
  if (block.sums == nullptr) {
    block.sums_panel = block.rows * kBFloat16Panel;
    block.sums = sums_scratch.take<float>(std::max(panels * block.sums_panel, 2 * kBFloat16SumsOfTile));
  }
  if (kernels.widens) {
    const std::int64_t longest = std::min(kDepthChunk, whole + kBFloat16Depth);
    block.widened = widened_scratch.take<float>(block.rows * (longest + kWidenedPadding));
  }
  const BFloat16 *a = block.a, *b = block.b;
  for (std::int64_t k = 0; k < whole; k += block.depth) {
    block.depth = std::min(kDepthChunk, whole - k);
    block.a = a + k;
    block.b = b + k * kBFloat16Panel;
    block.first = first && k == 0;
    block.last = last && k + block.depth == depth;
    kernels.multiply(block);
  }
  if (whole == depth && depth > 0) return;
  auto* tail = tail_scratch.take<BFloat16>(block.rows * kBFloat16Depth);
  std::fill(tail, tail + block.rows * kBFloat16Depth, BFloat16{});
  for (std::int64_t i = 0; i < block.rows; ++i)
    std::copy(a + i * block.a_row + whole, a + i * block.a_row + depth, tail + i * kBFloat16Depth);
  block.depth = kBFloat16Depth;
  block.a = tail;
  block.a_row = kBFloat16Depth;
  block.b = b + whole * kBFloat16Panel;
  block.first = first && whole == 0;
  block.last = last;
  kernels.multiply(block);
}

void gemm(const BFloat16Kernels& kernels, const BFloat16Rows& a, const PackedBFloat16& b, const BFloat16Output& c) {
  if (a.rows == 0 || b.columns() == 0) return;
  CARNOT_CHECK((c.sums == nullptr) != (c.rounded == nullptr) && !(c.sums != nullptr && c.bias != nullptr),
               "a product has one output, and only rounded ones have a bias");
  const std::int64_t group = panels_of_task(kernels, a.rows, b.columns()) * kBFloat16Panel;
  const std::int64_t groups = bfloat16_blocks(b.columns(), group);
  const std::int64_t most_rows = rows_of_block(kernels, a.rows, kernels.row_block);
  const std::int64_t tasks = bfloat16_blocks(a.rows, most_rows) * groups;
  kernel_pool().run(tasks, [&](std::int64_t task) {
    const std::int64_t row = task / groups * most_rows;
    const std::int64_t column = task % groups * group;
    BFloat16Block block{.rows = std::min(most_rows, a.rows - row),
                        .columns = std::min(group, b.columns() - column),
                        .a = a.data + row * a.row_stride,
                        .a_row = a.row_stride,
                        .b = b.panel(column / kBFloat16Panel),
                        .b_panel = b.panel_size(),
                        .out = c};
    const std::int64_t begin = row * c.row_stride + column;
    if (c.sums != nullptr) block.out.sums = c.sums + begin;
    if (c.rounded != nullptr) block.out.rounded = c.rounded + begin;
    if (c.bias != nullptr) block.out.bias = c.bias + column;
    multiply_block(kernels, block, b.depth());
  });
}

void gemm(const BFloat16Rows& a, const PackedBFloat16& b, float* c, std::int64_t c_row, bool accumulate) {
  gemm(bfloat16_kernels(), a, b, {.sums = c, .row_stride = c_row, .accumulate = accumulate});
}

void gemm(const BFloat16Rows& a, const PackedBFloat16& b, BFloat16* c, std::int64_t c_row, bool accumulate,
          const BFloat16* bias) {
  gemm(bfloat16_kernels(), a, b, {.rounded = c, .row_stride = c_row, .accumulate = accumulate, .bias = bias});
}

void gemm_by_blocks(const BFloat16Kernels& kernels, const BFloat16Rows& a, const PackedBFloat16& b,
                    std::int64_t columns, float* c, std::int64_t c_row,
                    const std::function<void(const ProductBlock&)>& use) {
  CARNOT_CHECK_EQ(columns % kBFloat16Panel, 0);
  if (a.rows == 0 || b.columns() == 0) return;
  const std::int64_t blocks = bfloat16_blocks(b.columns(), columns);
  const std::int64_t most_rows = rows_of_used_block(kernels, a.rows, blocks);
  const std::int64_t row_blocks = bfloat16_blocks(a.rows, most_rows);
  // All rows times some panels before the next panels: B is read from memory once.
  kernel_pool().run(blocks * row_blocks, [&](std::int64_t task) {
    const std::int64_t column = task / row_blocks * columns, row = task % row_blocks * most_rows;
    ProductBlock done{.row = row,
                      .rows = std::min(most_rows, a.rows - row),
                      .column = column,
                      .columns = std::min(columns, b.columns() - column)};
    if (c == nullptr) {
      done.row_stride = columns;
      done.sums = used_scratch.take<float>(done.rows * columns);
    } else {
      done.row_stride = c_row;
      done.sums = c + row * c_row + column;
    }
    multiply_block(kernels,
                   {.rows = done.rows,
                    .columns = done.columns,
                    .a = a.data + row * a.row_stride,
                    .a_row = a.row_stride,
                    .b = b.panel(column / kBFloat16Panel),
                    .b_panel = b.panel_size(),
                    .out = {.sums = done.sums, .row_stride = done.row_stride}},
                   b.depth());
    use(done);
  });
}

}  // namespace carnot::kernel
