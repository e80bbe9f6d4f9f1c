#include "carnot/core/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <future>
#include <sstream>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/limits.h"
#include "testing/missing.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
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

std::string xz_of(const std::string& content) {
  std::string packed(content.size() / 64 + 4096, '\0');
  std::size_t size = 0;
  const auto* in = reinterpret_cast<const std::uint8_t*>(content.data());
  auto* out = reinterpret_cast<std::uint8_t*>(packed.data());
  if (lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, nullptr, in, content.size(), out, &size, packed.size()) != LZMA_OK)
    ADD_FAILURE() << "xz cannot pack";
  packed.resize(size);
  return packed;
}

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
  struct rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit tight{.rlim_cur = 2, .rlim_max = old.rlim_max};
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

TEST_F(Files, BehindALinkAreReplacedAndTheLinkIsKept) {
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

TEST_F(Files, AreNotWrittenThroughAPlantedLink) {
  ASSERT_TRUE(write_file_atomically(folder_ / "victim", "mine").ok());
  fs::create_symlink("victim", folder_ / "x.tmp");
  fs::create_symlink("victim", folder_ / ".x.tmp");
  ASSERT_TRUE(write_file_atomically(folder_ / "x", "new").ok());
  EXPECT_EQ(*read_file(folder_ / "victim"), "mine");
  EXPECT_TRUE(fs::is_symlink(folder_ / "x.tmp"));
}

TEST_F(Files, APipeIsWrittenToAndKept) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Descriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  ASSERT_TRUE(write_file_atomically(pipe, "through").ok());
  char text[16] = {};
  EXPECT_EQ(::read(reader.get(), text, sizeof text), 7);
  EXPECT_STREQ(text, "through");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(Files, APipeIsReadToItsEndAndOneWithoutAWriterIsRefusedAtOnce) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto refused = read_file(pipe);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, pipe.string() + ": is a pipe that nothing writes into; expected a file");

  Descriptor writer(::open(pipe.c_str(), O_RDWR));  // so that the reader finds a writer
  auto content = std::async(std::launch::async, [&] { return read_file(pipe); });
  std::ofstream(pipe) << std::string(1 << 20, 'x');  // far more than a pipe holds
  ASSERT_TRUE(writer.close());
  EXPECT_EQ(content.get().value(), std::string(1 << 20, 'x'));
}

TEST_F(Files, ADeviceIsWrittenToAndKept) {
  // Our own device where that is allowed: a bug here must not overwrite the machine's.
  const fs::path own = folder_ / "null";
  const bool made = ::mknod(own.c_str(), S_IFCHR | 0600, ::makedev(1, 3)) == 0;
  const fs::path device = made && Descriptor(::open(own.c_str(), O_WRONLY)).is_open() ? own : fs::path("/dev/null");
  if (device != own && ::geteuid() == 0) CARNOT_SKIP(Devices, "root that may not create devices");
  EXPECT_TRUE(write_file_atomically(device, "away").ok());
  EXPECT_TRUE(fs::is_character_file(device));
}

TEST_F(Files, XzIsReadAndATruncatedFileIsRefused) {
  const fs::path packed = folder_ / "y.xz";
  const unsigned char bytes[] = {0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04};
  std::ofstream(packed, std::ios::binary).write(reinterpret_cast<const char*>(bytes), sizeof bytes);
  const auto result = read_maybe_compressed(packed);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("not a complete xz file"), std::string::npos);
}

TEST_F(Files, AnEndlessDeviceAndAFileBeyondTheLimitAreRefused) {
  const auto device = read_file("/dev/zero");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().message, "/dev/zero: is a device, expected a file or a pipe");
  EXPECT_EQ(*read_file("/dev/null"), "");

  std::ofstream(folder_ / "holes").put('a');
  fs::resize_file(folder_ / "holes", std::uintmax_t{1} << 40);
  const auto holes = read_file(folder_ / "holes");
  ASSERT_FALSE(holes.ok());
  EXPECT_NE(holes.error().message.find("holds more than 4096 MiB"), std::string::npos) << holes.error().message;
}

TEST_F(Files, AnXzFileThatExpandsBeyondTheLimitIsRefused) {
  const std::string content(6 << 20, '\0');
  std::ofstream(folder_ / "zeros.xz", std::ios::binary) << xz_of(content);
  EXPECT_EQ(*read_maybe_compressed(folder_ / "zeros.xz"), content);
  const auto result = expand_xz(xz_of(content), "zeros.xz", 5 << 20);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("zeros.xz, expanded: holds more than 5 MiB"), std::string::npos);
}

TEST_F(Files, TooManyLinesAreRefused) {
  std::ofstream(folder_ / "lines.xz", std::ios::binary) << xz_of(std::string(kMaxLines + 1, '\n'));
  const auto result = read_maybe_compressed(folder_ / "lines.xz");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("has 16777217 lines; at most 16777216 are read"), std::string::npos);
}

TEST(ReadStream, ReadsAllOfItAndRefusesAnEndlessOne) {
  const std::string content(100'000, 'x');
  std::istringstream in(content);
  EXPECT_EQ(*read_stream(in, "standard input"), content);
  std::ifstream endless("/dev/zero", std::ios::binary);
  EXPECT_EQ(read_stream(endless, "standard input", 3 << 20).error().message,
            "standard input: holds more than 3 MiB, the most that is read");
}

TEST(ReadLine, YieldsLineAfterLineAndRefusesAnEndlessOne) {
  std::istringstream in("a\n\nb");
  std::string line;
  for (const char* expected : {"a", "", "b"}) {
    ASSERT_TRUE(read_line(in, line).value());
    EXPECT_EQ(line, expected);
  }
  EXPECT_FALSE(read_line(in, line).value());
  std::ifstream endless("/dev/zero", std::ios::binary);
  EXPECT_EQ(read_line(endless, line, 2 << 20).error().message, "a line holds more than 2 MiB, the most that is read");
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
