#include "carnot/core/run/machine_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "carnot/core/base/aligned_memory.h"
#include "carnot/core/base/file.h"
#include "carnot/core/nn/kv_cache.h"
#include "testing/missing.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMegabyte = 1 << 20;

/// A made-up /proc and /sys: 100 MB available, 10 MB of them this process's already.
class FakeMachine : public ::testing::Test {
 protected:
  FakeMachine() : root_(fs::temp_directory_path() / ("carnot_machine_test_" + std::to_string(::getpid()))) {
    put("proc/meminfo", "MemTotal: 204800 kB\nMemFree: 1024 kB\nMemAvailable: 102400 kB\n");
    put("proc/self/status", "Name: x\nVmHWM: 20480 kB\nVmRSS: 10240 kB\n");
  }
  ~FakeMachine() override { fs::remove_all(root_); }

  void put(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    ASSERT_TRUE(write_file_atomically(root_ / path, text).ok());
  }
  void put_group(const fs::path& folder, const std::string& limit, std::int64_t usage, std::int64_t cache) const {
    put(folder / "memory.max", limit + "\n");
    put(folder / "memory.current", std::to_string(usage) + "\n");
    put(folder / "memory.stat", "anon 1\nfile " + std::to_string(cache) + "\n");
  }

  fs::path root_;
};

TEST_F(FakeMachine, OffersWhatTheKernelCallsAvailableAndWhatTheProcessHolds) {
  const MachineMemory memory = available_memory(root_);
  EXPECT_EQ(memory.bytes, 110 * kMegabyte);
  EXPECT_EQ(memory.source, "of this machine");
}

TEST_F(FakeMachine, OffersNoMoreThanAControlGroupOrOneAboveIt) {
  put("proc/self/cgroup", "0::/jobs/7\n");
  put_group("sys/fs/cgroup/jobs/7", "max", 30 * kMegabyte, 0);
  put_group("sys/fs/cgroup/jobs", std::to_string(80 * kMegabyte), 50 * kMegabyte, 5 * kMegabyte);
  const MachineMemory memory = available_memory(root_);
  EXPECT_EQ(memory.bytes, (80 - 50 + 5 + 10) * kMegabyte);
  EXPECT_EQ(memory.source, "of control group /jobs");
}

TEST_F(FakeMachine, ReadsControlGroupsOfVersionOne) {
  put("proc/self/cgroup", "5:cpu,cpuacct:/\n4:hugetlb,memory:/box\n");
  put("sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(64 * kMegabyte));
  put("sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(20 * kMegabyte));
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "1");
  EXPECT_EQ(available_memory(root_).bytes, (64 - 20 + 10) * kMegabyte);
}

TEST_F(FakeMachine, WithoutAnyOfTheFilesIsUnknown) { EXPECT_EQ(available_memory(root_ / "nowhere").bytes, 0); }

TEST(ProcessMemory, GrowsWithWhatIsTouchedAndRemembersItsPeak) {
#ifdef __SANITIZE_ADDRESS__
  CARNOT_SKIP(Uninstrumented, "the address sanitizer's malloc does not say what it has free");
#endif
  const std::int64_t before = memory_in_use();
  {
    const std::vector<char> block(64 * kMegabyte, 'x');
    EXPECT_GT(memory_in_use() - before, 60 * kMegabyte);
  }
  EXPECT_LT(memory_in_use() - before, 30 * kMegabyte);
  EXPECT_GT(peak_resident_memory() - before, 60 * kMegabyte);
}

std::int64_t resident() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

/// Takes and frees 200 MB of the heap, which keeps them; what the process holds then.
std::int64_t held_after_freeing_much() {
  {
    const std::vector<std::vector<char>> blocks(20, std::vector<char>(10 * kMegabyte, 1));
  }
  return resident();
}

TEST(ThisMachine, GetsFreedMemoryBackBeforeALargeCacheIsWritten) {
  keep_freed_memory();
  const auto options = at::TensorOptions().dtype(at::kFloat);
  const ModelConfig config{.num_layers = 1, .num_kv_heads = 1, .head_dim = 64};
  const std::int64_t block = KvCache(config, {.blocks = 1}, options).bytes();
  KvCache small(config, {.blocks = 16}, options),
      large(config, {.blocks = static_cast<int>(300 * kMegabyte / block)}, options);
  std::int64_t held = held_after_freeing_much();
  small.take_memory();
  EXPECT_GT(resident(), held - 50 * kMegabyte);
  large.take_memory();
  EXPECT_LT(resident(), held - 150 * kMegabyte);
  held = held_after_freeing_much();
  large.take_memory();
  EXPECT_GT(resident(), held - 50 * kMegabyte) << "it is taken already";
  large.give_back_memory();
  large.take_memory();
  EXPECT_LT(resident(), held - 150 * kMegabyte);
}

}  // namespace
}  // namespace carnot
