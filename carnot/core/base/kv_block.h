// base/kv_block.h -- the size of a KV block, shared by the cache, which counts blocks, and the kernels, which read
// them.
#pragma once

namespace carnot {

/// Positions per block of keys and values.
inline constexpr int kBlockTokens = 16;

}  // namespace carnot
