#include "carnot/core/nn/cpu_memory.h"

#include <ATen/Functions.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

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

at::Tensor untouched_zeros(at::IntArrayRef shape, const at::TensorOptions& options) {
  const std::size_t bytes = c10::multiply_integers(shape) * options.dtype().itemsize();
  if (bytes == 0) return at::zeros(shape, options);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  return at::from_blob(data, shape, [bytes](void* mapped) { ::munmap(mapped, bytes); }, options);
}

void give_back_memory(const at::Tensor& zeros) {
  if (zeros.numel() > 0) ::madvise(zeros.data_ptr(), zeros.nbytes(), MADV_DONTNEED);
}

}  // namespace carnot
