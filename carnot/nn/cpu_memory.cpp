#include "carnot/nn/cpu_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace carnot {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and what the widest vector loads like
constexpr std::uint8_t kPriority = 100;

class MallocAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::Device(c10::DeviceType::CPU)};
    char* block = static_cast<char*>(std::malloc(bytes + kAlignment + sizeof(char*)));
    if (block == nullptr) throw std::bad_alloc();
    char* data = block + sizeof(char*);
    data += (kAlignment - reinterpret_cast<std::uintptr_t>(data) % kAlignment) % kAlignment;
    reinterpret_cast<char**>(data)[-1] = block;
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  static void release(void* data) {
    if (data != nullptr) std::free(static_cast<char**>(data)[-1]);
  }
};

}  // namespace

void take_tensor_memory_from_malloc() {
  static MallocAllocator allocator;
  c10::SetCPUAllocator(&allocator, kPriority);
}

void keep_few_compiled_products() { ::setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32", /*overwrite=*/0); }

}  // namespace carnot
