#include "carnot/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "carnot/base/descriptor.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  Files() : folder_(fs::temp_directory_path() / ("carnot_file_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Files() override { fs::remove_all(folder_); }

  std::ptrdiff_t num_entries() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  fs::path folder_;
};

TEST_F(Files, ComeBackAsWritten) {
  const std::string content("a\0b\n", 4);
  ASSERT_TRUE(write_file_atomically(folder_ / "x", content).ok());
  EXPECT_EQ(*read_file(folder_ / "x"), content);
  EXPECT_EQ(num_entries(), 1);
}

TEST_F(Files, AMissingOneIsNamed) {
  const auto result = read_file(folder_ / "missing");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("missing"), std::string::npos);
}

TEST_F(Files, AFailedWriteLeavesTheOldContentAndNothingElse) {
  ASSERT_TRUE(write_file_atomically(folder_ / "x", "old").ok());
  struct rlimit old {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit tight { .rlim_cur = 2, .rlim_max = old.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const Status status = write_file_atomically(folder_ / "x", "new");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, (folder_ / "x").string() + ": cannot write: File too large");
  EXPECT_EQ(*read_file(folder_ / "x"), "old");
  EXPECT_EQ(num_entries(), 1);
}

TEST_F(Files, ThatAreReplacedKeepTheirPermissions) {
  ASSERT_TRUE(write_file_atomically(folder_ / "x", "old").ok());
  fs::permissions(folder_ / "x", fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_TRUE(write_file_atomically(folder_ / "x", "new").ok());
  EXPECT_EQ(fs::status(folder_ / "x").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Files, BehindALinkAreReplacedAndTheLinkStays) {
  fs::create_directories(folder_ / "far");
  fs::create_symlink("far/file", folder_ / "second");
  fs::create_symlink("second", folder_ / "first");
  for (const std::string content : {"made", "replaced"}) {
    ASSERT_TRUE(write_file_atomically(folder_ / "first", content).ok());
    EXPECT_TRUE(fs::is_symlink(folder_ / "first") && fs::is_symlink(folder_ / "second"));
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder_ / "far" / "file")));
    EXPECT_EQ(*read_file(folder_ / "far" / "file"), content);
  }
  fs::create_symlink("round", folder_ / "round");
  EXPECT_FALSE(write_file_atomically(folder_ / "round", "x").ok());
  EXPECT_FALSE(write_file_atomically(folder_ / "far", "x").ok()) << "a folder is no file";
}

TEST_F(Files, AreNotWrittenThroughALinkThatSomebodyPlanted) {
  ASSERT_TRUE(write_file_atomically(folder_ / "victim", "mine").ok());
  fs::create_symlink("victim", folder_ / "x.tmp");
  fs::create_symlink("victim", folder_ / ".x.tmp");
  ASSERT_TRUE(write_file_atomically(folder_ / "x", "new").ok());
  EXPECT_EQ(*read_file(folder_ / "victim"), "mine");
  EXPECT_TRUE(fs::is_symlink(folder_ / "x.tmp"));
}

TEST_F(Files, APipeIsWrittenIntoAndStays) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Descriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  ASSERT_TRUE(write_file_atomically(pipe, "through").ok());
  char text[16] = {};
  EXPECT_EQ(::read(reader.get(), text, sizeof text), 7);
  EXPECT_STREQ(text, "through");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(Files, ADeviceIsWrittenIntoAndStays) {
  // Of our own where that is allowed: a fault here must not take the machine's.
  const fs::path own = folder_ / "null";
  const bool made = ::mknod(own.c_str(), S_IFCHR | 0600, ::makedev(1, 3)) == 0;
  const fs::path device = made && Descriptor(::open(own.c_str(), O_WRONLY)).is_open() ? own : fs::path("/dev/null");
  if (device != own && ::geteuid() == 0) GTEST_SKIP() << "root without devices of its own";
  EXPECT_TRUE(write_file_atomically(device, "away").ok());
  EXPECT_TRUE(fs::is_character_file(device));
}

TEST_F(Files, XzIsReadAndATruncatedOneRefused) {
  const fs::path packed = folder_ / "y.xz";
  const unsigned char bytes[] = {0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04};
  std::ofstream(packed, std::ios::binary).write(reinterpret_cast<const char*>(bytes), sizeof bytes);
  const auto result = read_maybe_compressed(packed);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("not a complete xz file"), std::string::npos);
}

TEST(SplitLines, KeepsEmptyLinesAndAnUnfinishedLastOne) {
  EXPECT_EQ(split_lines("a\n\nb"), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(split_lines("a\n"), (std::vector<std::string_view>{"a"}));
}

TEST(Sha256, MatchesThePublishedVector) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace carnot
