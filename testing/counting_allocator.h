// testing/counting_allocator.h -- bytes of live CPU tensors, and their maximum. Header only, because this library does
// not link LibTorch.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace carnot::testing {

/// Wraps LibTorch's CPU allocator for as long as it lives. Tensors made meanwhile may outlive it.
class CountingAllocator final : public c10::Allocator {
 public:
  CountingAllocator() : below_(c10::GetCPUAllocator()) {
    live_ = peak_ = 0;
    c10::SetCPUAllocator(this, kPriority);
  }
  ~CountingAllocator() override { c10::SetCPUAllocator(below_, kPriority); }
  CountingAllocator(const CountingAllocator&) = delete;
  CountingAllocator& operator=(const CountingAllocator&) = delete;

  /// Of tensors made since then; those made before do not count.
  std::int64_t live() const { return live_; }
  std::int64_t peak() const { return peak_; }
  void forget_peak() { peak_ = live_.load(); }

  c10::DataPtr allocate(std::size_t bytes) override {
    char* block = static_cast<char*>(std::aligned_alloc(kHeader, (bytes + 2 * kHeader - 1) / kHeader * kHeader));
    *reinterpret_cast<std::int64_t*>(block) = static_cast<std::int64_t>(bytes);
    live_ += static_cast<std::int64_t>(bytes);
    peak_ = std::max(peak_.load(), live_.load());
    char* data = block + kHeader;
    return {data, data, &free, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  static constexpr std::uint8_t kPriority = 255;
  static constexpr std::size_t kHeader = 64;  ///< before the data; holds their size, keeps them aligned

  static void free(void* data) {
    if (data == nullptr) return;
    char* block = static_cast<char*>(data) - kHeader;
    live_ -= *reinterpret_cast<std::int64_t*>(block);
    std::free(block);
  }

  c10::Allocator* below_;
  inline static std::atomic<std::int64_t> live_, peak_;
};

}  // namespace carnot::testing
