// kernel/gemm/bfloat16_scratch.h -- aligned memory for a thread's temporary values.
#pragma once

#include <cstdint>
#include <memory>

#include "carnot/core/base/aligned_memory.h"
#include "carnot/core/base/check.h"

namespace carnot::kernel {

/// Grows and is kept: one per purpose and thread. The content is undefined after take().
class BFloat16Scratch {
 public:
  template <class T>
  T* take(std::int64_t count) {
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
    if (bytes > capacity_) {
      data_.reset();
      data_.reset(allocate_aligned(static_cast<std::size_t>(bytes)));
      CARNOT_CHECK(data_ != nullptr, "out of memory for a matrix product");
      capacity_ = bytes;
    }
    return static_cast<T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(void* p) const { free_aligned(p); }
  };
  std::unique_ptr<void, Free> data_{};
  std::int64_t capacity_ = 0;
};

}  // namespace carnot::kernel
