// optim/chunks.h -- a tensor's elements in chunks of a fixed size, so that no result depends on the thread count.
#pragma once

#include <algorithm>
#include <cstdint>

#include "carnot/core/base/thread_pool.h"

namespace carnot {

inline constexpr std::int64_t kChunkElements = 1 << 14;

inline std::int64_t num_chunks(std::int64_t elements) { return (elements + kChunkElements - 1) / kChunkElements; }

/// body(chunk, begin, end) for every chunk of [0, elements), on the kernel pool.
template <class Body>
void for_each_chunk(std::int64_t elements, const Body& body) {
  kernel_pool().run(num_chunks(elements), [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * kChunkElements;
    body(chunk, begin, std::min(begin + kChunkElements, elements));
  });
}

}  // namespace carnot
