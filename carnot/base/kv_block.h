// base/kv_block.h -- the size of a KV block, on which the cache, which counts blocks, and the kernels, which read them,
// have to agree.
#pragma once

namespace carnot {

/// Positions that one block of keys and values holds.
inline constexpr int kBlockTokens = 16;

}  // namespace carnot
