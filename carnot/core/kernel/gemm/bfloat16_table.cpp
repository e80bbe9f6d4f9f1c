// Compiled once per kernel set with CARNOT_ISA_NAME, CARNOT_ISA_BFLOAT16 (the table's name) and CARNOT_VECTOR_BYTES
// set, and with CARNOT_BFLOAT16_PAIRS or CARNOT_BFLOAT16_AMX for the sets that multiply bfloat16 directly.
#include "carnot/core/kernel/attention/bfloat16_weights.h"
#ifdef CARNOT_BFLOAT16_AMX
#include "carnot/core/kernel/gemm/bfloat16_tiles.h"
#else
#include "carnot/core/kernel/attention/bfloat16_blocks.h"
#endif

namespace carnot::kernel {

// The second-level cache holds the part of a block that is read again: for AMX, the panels over a range of depth
// (1,024), 256 KiB; for the others, the rows, 480 KiB, or 384 KiB widened.
extern const BFloat16Kernels CARNOT_ISA_BFLOAT16;
const BFloat16Kernels CARNOT_ISA_BFLOAT16 = {
    .name = CARNOT_ISA_NAME,
#ifdef CARNOT_BFLOAT16_AMX
    .row_block = 256,
    .row_tile = kRowTile,
    .panel_group = 4,
    .few_rows = kFewRows,
#else
    .row_block = kWidens ? 96 : 240,
    .row_tile = kRowTile,
    .panel_group = 8,
    .few_rows = 0,
#endif
    .widens = kWidens,
    .multiply = multiply,
#ifdef CARNOT_BFLOAT16_AMX
    .scores = nullptr,
    .weighted_values = nullptr,
#else
    .scores = scores,
    .weighted_values = weighted_values,
#endif
    .exponentials = exponentials,
    .scaled = scaled,
};

}  // namespace carnot::kernel
