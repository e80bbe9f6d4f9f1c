#include "carnot/core/nn/cpu_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "carnot/core/base/aligned_memory.h"

namespace carnot {
namespace {

constexpr std::uint8_t kPriority = 100;

class AlignedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::Device(c10::DeviceType::CPU)};
    void* data = allocate_aligned(bytes);
    if (data == nullptr) throw std::bad_alloc();
    return {data, data, &free_aligned, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_aligned; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

void take_aligned_tensor_memory() {
  static AlignedAllocator allocator;
  c10::SetCPUAllocator(&allocator, kPriority);
}

void keep_few_compiled_products() { ::setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32", /*overwrite=*/0); }

}  // namespace carnot
