#include "carnot/core/base/aligned_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

/// By default, the address sanitizer ends the program where malloc would return null.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace carnot {
namespace {

TEST(AlignedMemory, IsAlignedWritableAndApart) {
  std::vector<unsigned char*> blocks;
  for (std::size_t bytes = 1; bytes < 2000; bytes += 37) {
    auto* block = static_cast<unsigned char*>(allocate_aligned(bytes));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % kMemoryAlignment, 0u);
    std::memset(block, static_cast<int>(blocks.size()), bytes);
    blocks.push_back(block);
  }
  std::size_t index = 0;
  for (std::size_t bytes = 1; bytes < 2000; bytes += 37, ++index) {
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(blocks[index][i], index) << bytes;
    free_aligned(blocks[index]);
  }
  free_aligned(nullptr);
}

TEST(AlignedMemory, GivesLargeBlocksToo) {
  auto* block = static_cast<unsigned char*>(allocate_aligned(kMappedBytes + 5));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % kMemoryAlignment, 0u);
  block[0] = 1;
  block[kMappedBytes + 4] = 2;
  EXPECT_EQ(block[0] + block[kMappedBytes + 4], 3);
  free_aligned(block);
}

TEST(AlignedMemory, ReturnsNullIfThereIsNotEnough) { EXPECT_EQ(allocate_aligned(std::size_t{1} << 62), nullptr); }

}  // namespace
}  // namespace carnot
