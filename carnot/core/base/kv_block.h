// base/kv_block.h -- the size of a KV block, shared by the cache, which counts blocks, and the kernels, which read
// them.
#pragma once

namespace carnot {

/// Positions per block of keys and values.
inline constexpr int kBlockTokens = 16;

/// Attention reads blocks in runs of this many, from multiples of it on: one depth step of the bfloat16 products.
inline constexpr int kBlocksOfRun = 2;

}  // namespace carnot
