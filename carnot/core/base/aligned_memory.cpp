#include "carnot/core/base/aligned_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace carnot {
namespace {

/// The address, rounded up to a multiple.
char* rounded_up(char* address, std::size_t multiple) {
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(address) % multiple;
  return beyond == 0 ? address : address + (multiple - beyond);
}

void ask_for_huge_pages(char* block, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  char* first = rounded_up(block, page);
  // Only advice: without huge pages, nothing changes.
  ::madvise(first, static_cast<std::size_t>(block + bytes - first) / page * page, MADV_HUGEPAGE);
}

}  // namespace

void* allocate_aligned(std::size_t bytes) {
  const std::size_t whole = bytes + kMemoryAlignment + sizeof(char*);
  char* block = static_cast<char*>(std::malloc(whole));
  if (block == nullptr) return nullptr;
  if (whole >= kMappedBytes) ask_for_huge_pages(block, whole);
  char* data = rounded_up(block + sizeof(char*), kMemoryAlignment);
  reinterpret_cast<char**>(data)[-1] = block;
  return data;
}

void free_aligned(void* data) {
  if (data != nullptr) std::free(static_cast<char**>(data)[-1]);
}

void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, kMappedBytes);
  mallopt(M_TRIM_THRESHOLD, 2047 << 20);
}

void return_freed_memory() { ::malloc_trim(0); }

}  // namespace carnot
