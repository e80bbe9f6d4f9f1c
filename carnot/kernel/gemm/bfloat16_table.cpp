// Compiled once per kernel set with CARNOT_ISA_NAME, CARNOT_ISA_BFLOAT16 (the table's name), CARNOT_VECTOR_BYTES and
// CARNOT_ROW_TILE set, and with CARNOT_BFLOAT16_PAIRS or CARNOT_BFLOAT16_AMX for the sets that multiply bfloat16 itself.
#ifdef CARNOT_BFLOAT16_AMX
#include "carnot/kernel/gemm/bfloat16_tiles.h"
#else
#include "carnot/kernel/gemm/bfloat16_rows.h"
#endif

namespace carnot::kernel {

// Rows of A over a stretch of depth (1,024) stay in the second-level cache: 480 KiB of them, or 384 KiB widened.
extern const BFloat16Kernels CARNOT_ISA_BFLOAT16;
const BFloat16Kernels CARNOT_ISA_BFLOAT16 = {
    .name = CARNOT_ISA_NAME,
#ifdef CARNOT_BFLOAT16_AMX
    .row_block = 256,
#else
    .row_block = kWidens ? 96 : 240,
#endif
    .panel_group = kWidens ? 4 : 2,
    .widens = kWidens,
    .multiply = multiply,
};

}  // namespace carnot::kernel
