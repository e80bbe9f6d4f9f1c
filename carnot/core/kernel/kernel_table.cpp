// Compiled once per instruction set with CARNOT_ISA_NAME, CARNOT_ISA_TABLES (the variable's name), CARNOT_VECTOR_BYTES
// and CARNOT_ROW_TILE set.
#include "carnot/core/kernel/attention/tiles.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/elementwise/convolution.h"
#include "carnot/core/kernel/elementwise/rows.h"
#include "carnot/core/kernel/gemm/tile.h"
#include "carnot/core/kernel/kernel_tables.h"
#include "carnot/core/kernel/recurrent/delta_steps.h"
#include "carnot/core/kernel/statistics/rows.h"
#include "carnot/core/kernel/vectors.h"

namespace carnot::kernel {
namespace {

template <class T>
constexpr KernelTable<T> table() {
  return {.name = CARNOT_ISA_NAME,
          .row_tile = CARNOT_ROW_TILE,
          .panel = 2 * kLanes<T>,
          .gemm_tile = gemm_tile<T>,
          .scores = scores<T>,
          .weighted_values = weighted_values<T>,
          .softmax = softmax<T>,
          .add_outer = add_outer<T>,
          .dot = dot<T>,
          .delta_step = delta_step<T>,
          .delta_step_backward = delta_step_backward<T>,
          .rotate = rotate<T>,
          .row_statistics = row_statistics<T>,
          .segment_statistics = segment_statistics<T>,
          .row_draw = row_draw<T>,
          .strip_sums = strip_sums<T>,
          .count_below = count_below<T>,
          .kept_statistics = kept_statistics<T>,
          .row_statistics_backward = row_statistics_backward<T>};
}

template <class S>
constexpr StorageTable<S> storage() {
  return {.widen = widen<S>,
          .round = round<S>,
          .add = add<S>,
          .rms_norm = rms_norm<S>,
          .rms_norm_backward = rms_norm_backward<S>,
          .swiglu = swiglu<S>,
          .swiglu_backward = swiglu_backward<S>,
          .geglu = geglu<S>,
          .geglu_backward = geglu_backward<S>,
          .sigmoid_product = sigmoid_product<S>,
          .sigmoid_product_backward = sigmoid_product_backward<S>,
          .multiply = multiply<S>,
          .multiply_backward = multiply_backward<S>,
          .convolve = convolve<S>,
          .convolve_backward = convolve_backward<S>};
}

}  // namespace

extern const KernelTables CARNOT_ISA_TABLES;
const KernelTables CARNOT_ISA_TABLES = {.floats = table<float>(),
                                        .doubles = table<double>(),
                                        .stored_floats = storage<float>(),
                                        .stored_doubles = storage<double>(),
                                        .stored_bfloat16 = storage<BFloat16>()};

}  // namespace carnot::kernel
