#include "carnot/core/run/metrics_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/run/event_file.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
namespace fs = std::filesystem;

/// One event as read back from a file.
struct ReadEvent {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string version{};
  bool restart = false;
  std::vector<std::pair<std::string, float>> scalars{};
};

/// Reads protobuf fields one after the other.
class FieldReader {
 public:
  explicit FieldReader(std::string_view data) : data_(data) {}

  bool next() {
    if (data_.empty()) return false;
    const std::uint64_t key = varint();
    number = key >> 3;
    switch (key & 7) {
      case 0: value = varint(); break;
      case 1: value = fixed(8); break;
      case 5: value = fixed(4); break;
      case 2: {
        const auto size = static_cast<std::size_t>(varint());
        bytes = data_.substr(0, size);
        data_.remove_prefix(size);
        break;
      }
      default: ADD_FAILURE() << "wire type " << (key & 7); return false;
    }
    return true;
  }

  std::uint64_t number = 0;
  std::uint64_t value = 0;
  std::string_view bytes{};

 private:
  std::uint64_t varint() {
    std::uint64_t out = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(data_[0]);
      data_.remove_prefix(1);
      out |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return out;
    }
  }

  std::uint64_t fixed(std::size_t size) {
    std::uint64_t out = 0;
    std::memcpy(&out, data_.data(), size);
    data_.remove_prefix(size);
    return out;
  }

  std::string_view data_;
};

std::pair<std::string, float> read_scalar(std::string_view bytes) {
  std::pair<std::string, float> scalar;
  for (FieldReader field(bytes); field.next();) {
    if (field.number == 1) scalar.first = field.bytes;
    if (field.number == 2) scalar.second = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
  }
  return scalar;
}

ReadEvent read_event(std::string_view data) {
  ReadEvent event;
  for (FieldReader field(data); field.next();) {
    if (field.number == 1) event.wall_time = std::bit_cast<double>(field.value);
    if (field.number == 2) event.step = static_cast<std::int64_t>(field.value);
    if (field.number == 3) event.version = field.bytes;
    if (field.number == 7) event.restart = field.bytes == std::string_view("\x08\x01", 2);
    if (field.number != 5) continue;
    for (FieldReader value(field.bytes); value.next();) event.scalars.push_back(read_scalar(value.bytes));
  }
  return event;
}

/// Unframes the records and checks their sums.
std::vector<ReadEvent> read_events(std::string_view file) {
  std::vector<ReadEvent> events;
  while (!file.empty()) {
    std::uint64_t length = 0;
    std::uint32_t sum = 0;
    std::memcpy(&length, file.data(), 8);
    std::memcpy(&sum, file.data() + 8, 4);
    EXPECT_EQ(sum, masked_crc32c(file.substr(0, 8)));
    const std::string_view data = file.substr(12, length);
    std::memcpy(&sum, file.data() + 12 + length, 4);
    EXPECT_EQ(sum, masked_crc32c(data));
    events.push_back(read_event(data));
    file.remove_prefix(16 + length);
  }
  return events;
}

class MetricsFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("carnot_metrics_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  MetricsWriter open(std::optional<std::int64_t> resume_step = {}) {
    auto writer = MetricsWriter::open({.jsonl = jsonl(), .tensorboard = folder_ / "tb", .resume_step = resume_step});
    EXPECT_TRUE(writer.ok()) << (writer.ok() ? "" : writer.error().message);
    return std::move(writer).value();
  }

  fs::path jsonl() const { return folder_ / "metrics.jsonl"; }
  std::string text() const { return read_file(jsonl()).value(); }

  fs::path folder_;
};

TEST(Crc32c, EqualsThePublishedVectors) {
  // RFC 3720, appendix B.4, and the usual check value.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising += c;
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
}

TEST(EventFile, FramesARecordAsTensorBoardDoes) {
  const std::string record = tfrecord("abc");
  EXPECT_EQ(record.size(), 8u + 4u + 3u + 4u);
  EXPECT_EQ(record.substr(0, 8), std::string("\x03\0\0\0\0\0\0\0", 8));
}

TEST(EventFile, ReadsBackWhatWasWritten) {
  const std::string file =
      version_event(1.5) + restart_event(2, 7) + scalars_event(2.5, 1234567, {{"a/b", 0.5}, {"c", -3}});
  const auto events = read_events(file);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[0].wall_time, 1.5);
  EXPECT_TRUE(events[1].restart);
  EXPECT_EQ(events[1].step, 7);
  EXPECT_EQ(events[2].step, 1234567);
  EXPECT_THAT(events[2].scalars, ElementsAre(Pair("a/b", 0.5f), Pair("c", -3.0f)));
}

TEST_F(MetricsFiles, HoldOneLineAndOneEventAStep) {
  {
    MetricsWriter writer = open();
    ASSERT_TRUE(writer.write(1, {{"b", 2}, {"actor/entropy", 0.1}}).ok());
    EXPECT_EQ(text(), "{\"step\":1,\"actor/entropy\":0.1,\"b\":2.0}\n");
    ASSERT_TRUE(writer.write(2, {{"b", std::nan("")}}).ok());
  }
  EXPECT_THAT(text(), HasSubstr("{\"step\":2,\"b\":null}\n"));
  const fs::path events = fs::directory_iterator(folder_ / "tb")->path();
  EXPECT_THAT(events.filename().string(), HasSubstr("tfevents"));
  const auto read = read_events(read_file(events).value());
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[2].step, 2);
}

TEST_F(MetricsFiles, SayThatTheyWereDeletedOrReplaced) {
  const std::vector<std::function<void()>> losses{
      [&] { fs::remove(jsonl()); },
      [&] { ASSERT_TRUE(write_file_atomically(jsonl(), "other\n").ok()); },
      [&] { fs::remove_all(folder_ / "tb"); },
      [&] { fs::remove_all(folder_); },
  };
  for (const auto& lose : losses) {
    fs::remove_all(folder_);
    ASSERT_TRUE(make_folder(folder_).ok());
    MetricsWriter writer = open();
    ASSERT_TRUE(writer.write(1, {{"x", 1}}).ok());
    lose();
    const Status lost = writer.write(2, {{"x", 2}});
    ASSERT_FALSE(lost.ok());
    EXPECT_THAT(lost.error().message, HasSubstr("was deleted or replaced while it was written"));
  }
}

TEST_F(MetricsFiles, ForgetTheStepsThatComeAgain) {
  {
    MetricsWriter writer = open();
    for (int step = 1; step <= 5; ++step) ASSERT_TRUE(writer.write(step, {{"x", step}}).ok());
  }
  const std::string whole = text();
  ASSERT_TRUE(write_file_atomically(jsonl(), whole + "{\"step\":6,\"x\":").ok());
  MetricsWriter writer = open(3);
  EXPECT_EQ(text(), whole.substr(0, whole.find("{\"step\":4")));
  ASSERT_TRUE(writer.write(4, {{"x", 40}}).ok());
  EXPECT_THAT(text(), HasSubstr("{\"step\":4,\"x\":40.0}\n"));
}

TEST_F(MetricsFiles, ContinueWhereThereIsNothingYet) {
  open(3);
  EXPECT_EQ(text(), "");
}

TEST_F(MetricsFiles, NameADamagedLine) {
  ASSERT_TRUE(write_file_atomically(jsonl(), "{\"step\":1}\nnonsense\n{\"step\":3}\n").ok());
  const auto writer = MetricsWriter::open({.jsonl = jsonl(), .resume_step = 5});
  ASSERT_FALSE(writer.ok());
  EXPECT_THAT(writer.error().message, HasSubstr("metrics.jsonl:2: expected an object with an integer `step`"));
}

TEST_F(MetricsFiles, DropWhatAPowerCutLeftBehindTheStepsThatAreKept) {
  // Pages that never reached the disk come back as zeros.
  const std::string kept = "{\"step\":1}\n{\"step\":2}\n";
  ASSERT_TRUE(write_file_atomically(jsonl(), kept + std::string(30, '\0') + "\n{\"step\":4}\n").ok());
  open(2);
  EXPECT_EQ(text(), kept);
}

TEST_F(MetricsFiles, SayWhichStepsHaveNoLine) {
  std::vector<std::string> messages;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& message) { messages.push_back(message); });
  const auto open_at = [&](std::int64_t step, std::function<bool(std::int64_t)> is_logged) {
    EXPECT_TRUE(MetricsWriter::open({.jsonl = jsonl(), .resume_step = step, .is_logged = std::move(is_logged)}).ok());
  };
  const auto every = [](std::int64_t) { return true; };
  ASSERT_TRUE(write_file_atomically(jsonl(), "{\"step\":1}\n{\"step\":3}\n{\"step\":7}\n").ok());
  open_at(1, every);
  ASSERT_TRUE(write_file_atomically(jsonl(), "{\"step\":1}\n{\"step\":3}\n{\"step\":7}\n").ok());
  open_at(7, [](std::int64_t step) { return step % 2 == 1 && step != 5; });
  EXPECT_THAT(messages,
              ElementsAre(::testing::HasSubstr("the last checkpoint is that of step 1; repeated: step 3, 7")));
  messages.clear();
  open_at(7, every);
  set_log_sink(before);
  EXPECT_THAT(messages, ElementsAre(jsonl().string() +
                                    ": the run continues after step 7, but the file has no line of step 2, 4 to 6"));
}

TEST_F(MetricsFiles, NameAFolderThatCannotBeWritten) {
  const auto writer = MetricsWriter::open({.jsonl = folder_ / "none" / "metrics.jsonl"});
  ASSERT_FALSE(writer.ok());
  EXPECT_THAT(writer.error().message, HasSubstr("none/metrics.jsonl: cannot open for appending"));
}

TEST_F(MetricsFiles, NeverHoldHalfALineWhenTheDiskIsFull) {
  MetricsWriter writer = open();
  ASSERT_TRUE(writer.write(1, {{"x", 1}}).ok());
  const std::string before = text();

  struct rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit tight{.rlim_cur = before.size() + 5, .rlim_max = old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const Status status = writer.write(2, {{"x", 2}});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);

  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("metrics.jsonl: cannot append: File too large"));
  EXPECT_EQ(text(), before);
}

}  // namespace
}  // namespace carnot
