#include "carnot/core/kernel/gemm/gemm.h"

#include <algorithm>

#include "carnot/core/base/aligned_memory.h"
#include "carnot/core/base/check.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/dispatch.h"

namespace carnot::kernel {
namespace {

constexpr std::int64_t kDepthChunk = 256;  // a chunk of one panel (32 KiB) stays in the first-level cache
constexpr std::int64_t kRowBlock = 192;
constexpr std::int64_t kPanelGroup = 4;

std::int64_t blocks_of(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

}  // namespace

template <class T>
void PackedMatrix<T>::Free::operator()(T* p) const {
  free_aligned(p);
}

template <class T>
void PackedMatrix<T>::resize(std::int64_t depth, std::int64_t columns) {
  panel_ = kernel_table<T>().panel;
  depth_ = depth;
  columns_ = columns;
  const std::int64_t size = std::max<std::int64_t>(1, blocks_of(columns, panel_) * panel_ * depth);
  if (size <= capacity_) return;
  data_.reset();  // the old and the new never exist together
  data_.reset(static_cast<T*>(allocate_aligned(static_cast<std::size_t>(size) * sizeof(T))));
  CARNOT_CHECK(data_ != nullptr, "out of memory for a packed matrix");
  capacity_ = size;
}

template <class T>
void PackedMatrix<T>::pack_transposed(std::span<const Rows> weights, std::int64_t depth) {
  std::int64_t columns = 0;
  for (const Rows& weight : weights) columns += weight.count;
  resize(depth, columns);
  std::int64_t first = 0;
  for (const Rows& weight : weights) {
    for (std::int64_t j = 0; j < weight.count; ++j) {
      const std::int64_t column = first + j;
      T* out = data_.get() + (column / panel_) * depth_ * panel_ + column % panel_;
      const T* in = weight.data + j * weight.row_stride;
      for (std::int64_t k = 0; k < depth; ++k) out[k * panel_] = in[k];
    }
    first += weight.count;
  }
  for (std::int64_t column = columns; column % panel_ != 0; ++column) {
    T* out = data_.get() + (column / panel_) * depth_ * panel_ + column % panel_;
    for (std::int64_t k = 0; k < depth; ++k) out[k * panel_] = 0;
  }
}

template <class T>
void PackedMatrix<T>::pack(std::span<const Rows> weights, std::int64_t columns) {
  std::int64_t depth = 0;
  for (const Rows& weight : weights) depth += weight.count;
  resize(depth, columns);
  kernel_pool().run(blocks_of(columns, panel_), [&](std::int64_t p) {
    const std::int64_t begin = p * panel_;
    const std::int64_t width = std::min<std::int64_t>(panel_, columns - begin);
    T* out = data_.get() + p * depth_ * panel_;
    for (const Rows& weight : weights) {
      for (std::int64_t k = 0; k < weight.count; ++k, out += panel_) {
        const T* in = weight.data + k * weight.row_stride + begin;
        std::copy(in, in + width, out);
        std::fill(out + width, out + panel_, T(0));
      }
    }
  });
}

template <class T>
void gemm(const StridedMatrix<T>& a, const PackedMatrix<T>& b, T* c, std::int64_t c_row, bool accumulate) {
  const KernelTable<T>& kernels = kernel_table<T>();
  const std::int64_t panels = blocks_of(b.columns(), kernels.panel);
  const std::int64_t groups = blocks_of(panels, kPanelGroup);
  const std::int64_t tasks = blocks_of(a.rows, kRowBlock) * groups;
  if (b.depth() == 0 && !accumulate)
    for (std::int64_t i = 0; i < a.rows; ++i) std::fill_n(c + i * c_row, b.columns(), T(0));
  kernel_pool().run(tasks, [&](std::int64_t task) {
    const std::int64_t row_begin = task / groups * kRowBlock;
    const std::int64_t row_end = std::min(a.rows, row_begin + kRowBlock);
    const std::int64_t panel_begin = task % groups * kPanelGroup;
    const std::int64_t panel_end = std::min(panels, panel_begin + kPanelGroup);
    for (std::int64_t k = 0; k < b.depth(); k += kDepthChunk) {
      const std::int64_t depth = std::min(kDepthChunk, b.depth() - k);
      for (std::int64_t p = panel_begin; p < panel_end; ++p) {
        const T* panel = b.panel(p) + k * kernels.panel;
        const int columns = static_cast<int>(std::min<std::int64_t>(kernels.panel, b.columns() - p * kernels.panel));
        for (std::int64_t i = row_begin; i < row_end; i += kernels.row_tile) {
          const int rows = static_cast<int>(std::min<std::int64_t>(kernels.row_tile, row_end - i));
          kernels.gemm_tile(rows, columns, depth, a.data + i * a.row_stride + k * a.depth_stride, a.row_stride,
                            a.depth_stride, panel, c + i * c_row + p * kernels.panel, c_row, accumulate || k > 0);
        }
      }
    }
  });
}

template class PackedMatrix<float>;
template class PackedMatrix<double>;
template void gemm(const StridedMatrix<float>&, const PackedMatrix<float>&, float*, std::int64_t, bool);
template void gemm(const StridedMatrix<double>&, const PackedMatrix<double>&, double*, std::int64_t, bool);

}  // namespace carnot::kernel
