// Targets of `--output`: devices, links, planted names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "carnot/core/base/file.h"
#include "program.h"
#include "testing/missing.h"

namespace carnot::testing {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr char kRows[] = R"({"uid":"a","traj_id":"a/0","score":1.0,"token_ids":[1,2,3],"loss_mask":[0,1,1]}
{"uid":"a","traj_id":"a/1","score":0.0,"token_ids":[1,2,4],"loss_mask":[0,1,1]}
)";

TEST(OutputFile, MayBeADeviceWhichIsKept) {
  const ScratchFolder scratch;
  const std::string rows = scratch.write("rows.jsonl", kRows);
  // Our own devices if allowed: a bug here must not destroy the machine's.
  const std::string null = scratch.path("null"), full = scratch.path("full");
  const bool is_root = ::mknod(null.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) == 0 &&
                       ::mknod(full.c_str(), S_IFCHR | 0666, ::makedev(1, 7)) == 0;
  if (!is_root && ::geteuid() == 0) CARNOT_SKIP(Devices, "root that may not create devices");
  const auto away = run_carnot({"credit", rows, "--method", "grpo", "--output", is_root ? null : "/dev/null"});
  EXPECT_EQ(away.exit, 0) << away.err;
  EXPECT_TRUE(fs::is_character_file(is_root ? null : "/dev/null"));
  const auto no_room = run_carnot({"credit", rows, "--method", "grpo", "--output", is_root ? full : "/dev/full"});
  EXPECT_EQ(no_room.exit, 1);
  EXPECT_THAT(no_room.err, HasSubstr("full: cannot write: No space left on device"));
  EXPECT_TRUE(fs::is_character_file(is_root ? full : "/dev/full"));
}

TEST(OutputFile, MayBeALinkWhichIsKept) {
  const ScratchFolder scratch;
  const std::string rows = scratch.write("rows.jsonl", kRows), far = scratch.write("far/credit.jsonl", "old");
  fs::create_symlink("far/credit.jsonl", scratch.path("credit.jsonl"));
  fs::create_symlink(rows, scratch.path("credit.jsonl.tmp"));
  ASSERT_EQ(run_carnot({"credit", rows, "--method", "grpo", "--output", scratch.path("credit.jsonl")}).exit, 0);
  EXPECT_TRUE(fs::is_symlink(scratch.path("credit.jsonl")));
  EXPECT_THAT(*read_file(far), HasSubstr("advantage"));
  EXPECT_EQ(*read_file(rows), kRows) << "a planted link was followed";
}

}  // namespace
}  // namespace carnot::testing
