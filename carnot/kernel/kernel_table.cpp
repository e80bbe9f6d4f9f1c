// Compiled once per instruction set with CARNOT_ISA (a name), CARNOT_VECTOR_BYTES and CARNOT_ROW_TILE set.
#include "carnot/kernel/attention/tiles.h"
#include "carnot/kernel/dispatch.h"
#include "carnot/kernel/elementwise/rows.h"
#include "carnot/kernel/gemm/tile.h"
#include "carnot/kernel/statistics/rows.h"
#include "carnot/kernel/vectors.h"

namespace carnot::kernel {
namespace {

template <class T>
constexpr KernelTable<T> table() {
  return {.name = CARNOT_ISA_NAME,
          .row_tile = CARNOT_ROW_TILE,
          .panel = 2 * kLanes<T>,
          .gemm_tile = gemm_tile<T>,
          .scores = scores<T>,
          .softmax = softmax<T>,
          .weighted_values = weighted_values<T>,
          .add_outer = add_outer<T>,
          .dot = dot<T>,
          .add = add<T>,
          .rms_norm = rms_norm<T>,
          .rms_norm_backward = rms_norm_backward<T>,
          .swiglu = swiglu<T>,
          .swiglu_backward = swiglu_backward<T>,
          .rotate = rotate<T>,
          .row_statistics = row_statistics<T>,
          .count_below = count_below<T>,
          .kept_statistics = kept_statistics<T>,
          .row_statistics_backward = row_statistics_backward<T>};
}

}  // namespace

extern const KernelTable<float> CARNOT_ISA_FLOAT;
extern const KernelTable<double> CARNOT_ISA_DOUBLE;
const KernelTable<float> CARNOT_ISA_FLOAT = table<float>();
const KernelTable<double> CARNOT_ISA_DOUBLE = table<double>();

}  // namespace carnot::kernel
