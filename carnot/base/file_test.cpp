#include "carnot/base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace carnot {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  Files() : folder_(fs::temp_directory_path() / ("carnot_file_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Files() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(Files, ComeBackAsWritten) {
  const std::string content("a\0b\n", 4);
  ASSERT_TRUE(write_file_atomically(folder_ / "x", content).ok());
  EXPECT_EQ(*read_file(folder_ / "x"), content);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(Files, AMissingOneIsNamed) {
  const auto result = read_file(folder_ / "missing");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("missing"), std::string::npos);
}

TEST_F(Files, AFailedWriteLeavesTheOldContent) {
  ASSERT_TRUE(write_file_atomically(folder_ / "x", "old").ok());
  fs::create_directory(folder_ / "x.tmp");
  EXPECT_FALSE(write_file_atomically(folder_ / "x", "new").ok());
  EXPECT_EQ(*read_file(folder_ / "x"), "old");
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
