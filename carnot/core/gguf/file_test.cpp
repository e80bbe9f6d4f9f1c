#include "carnot/core/gguf/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "carnot/core/gguf/metadata.h"
#include "testing/paths.h"
#include "testing/random_text.h"
#include "testing/trials.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;

/// Writes a file value by value.
class Bytes {
 public:
  template <class Number>
  Bytes& number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Bytes& text(std::string_view value) {
    number<std::uint64_t>(value.size());
    bytes_ += value;
    return *this;
  }
  Bytes& head(std::uint64_t tensors, std::uint64_t values, std::uint32_t version = 3) {
    bytes_ += "GGUF";
    return number(version).number(tensors).number(values);
  }
  Bytes& tensor(std::string_view name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
                std::uint64_t begin) {
    text(name).number(static_cast<std::uint32_t>(sizes.size()));
    for (const std::uint64_t size : sizes) number(size);
    return number(type).number(begin);
  }
  Bytes& data(std::size_t size) {
    bytes_.resize((bytes_.size() + 31) / 32 * 32 + size);
    return *this;
  }
  const std::string& get() const { return bytes_; }

 private:
  std::string bytes_;
};

constexpr std::uint32_t kF32 = 0, kQ8 = 8;

std::string message_of(const Bytes& bytes) {
  const auto file = parse_gguf(bytes.get(), "x.gguf");
  return file ? "read" : file.error().message;
}

TEST(GgufFile, HasTheKeysAndTensorsThatThePackageGgufWrote) {
  const std::string bytes = read_file(recorded_path("gguf/qwen2.gguf")).value();
  const auto file = parse_gguf(bytes, "qwen2.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  GgufMetadata metadata(*file, "qwen2.gguf");
  EXPECT_EQ(metadata.text("general.architecture"), "qwen2");
  EXPECT_EQ(metadata.integer("qwen2.block_count"), 2);
  EXPECT_EQ(metadata.number("qwen2.attention.layer_norm_rms_epsilon"), 1e-6) << "as it was meant, not as stored";
  EXPECT_EQ(metadata.texts("tokenizer.ggml.tokens")->size(), 320u);
  EXPECT_FALSE(metadata.text("general.nothing").has_value());
  EXPECT_FALSE(metadata.any_problems());
  EXPECT_EQ(file->tensors.size(), 26u);
  const auto down = std::find_if(file->tensors.begin(), file->tensors.end(),
                                 [](const GgufTensor& tensor) { return tensor.name == "blk.1.ffn_down.weight"; });
  ASSERT_NE(down, file->tensors.end());
  EXPECT_EQ(down->shape, (std::vector<std::int64_t>{64, 96}));
}

TEST(GgufFile, ReadsAKeyOfEachKindAndNamesThoseOfTheWrongOne) {
  Bytes bytes;
  bytes.head(0, 4, 2).text("small").number(1U).number(std::int8_t{-3}).text("flag").number(7U).number(true);
  bytes.text("list").number(9U).number(5U).number(std::uint64_t{2}).number(7).number(-8);
  bytes.text("broken").number(8U).text("\xFF");
  const auto file = parse_gguf(bytes.get(), "x.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  GgufMetadata metadata(*file, "x.gguf");
  EXPECT_EQ(metadata.integer("small"), -3);
  EXPECT_EQ(metadata.flag("flag"), true);
  EXPECT_EQ(metadata.integers("list"), (std::vector<std::int64_t>{7, -8}));
  EXPECT_FALSE(metadata.any_problems());
  EXPECT_FALSE(metadata.text("small") || metadata.integer("flag") || metadata.number("list") ||
               metadata.texts("list") || metadata.text("broken"));
  EXPECT_THAT(metadata.error().message, HasSubstr("x.gguf: broken: expected a string in UTF-8"));
}

TEST(GgufFile, WithAnInvalidHeaderIsRefused) {
  EXPECT_THAT(message_of(Bytes()), HasSubstr("is no GGUF file"));
  EXPECT_THAT(message_of(Bytes().head(0, 0, 1)), HasSubstr("has GGUF version 1; expected 2 or 3"));
  EXPECT_THAT(message_of(Bytes().head(0, 0, 3U << 24)), HasSubstr("big-endian"));
  EXPECT_THAT(message_of(Bytes().head(std::uint64_t{1} << 60, 0)), HasSubstr("at most 262144"));
  EXPECT_EQ(message_of(Bytes().head(0, 0)), "read");
}

TEST(GgufFile, WithDamagedKeysIsRefused) {
  const auto one = [] { return Bytes().head(0, 1).text("k"); };
  EXPECT_THAT(message_of(one().number(13U)), HasSubstr("unknown kind 13"));
  EXPECT_THAT(message_of(one().number(8U).number(std::uint64_t{1} << 63)), HasSubstr("truncated"));
  EXPECT_THAT(message_of(one().number(9U).number(9U)), HasSubstr("array of arrays"));
  EXPECT_THAT(message_of(one().number(9U).number(8U).number(~std::uint64_t{0})), HasSubstr("truncated"));
  EXPECT_THAT(message_of(Bytes().head(0, 2).text("k").number(7U).number(true).text("k").number(7U).number(true)),
              HasSubstr("has the key 'k' twice"));
}

TEST(GgufFile, WithDamagedTensorsIsRefused) {
  const auto one = [](const std::vector<std::uint64_t>& sizes, std::uint32_t type, std::uint64_t begin) {
    return message_of(Bytes().head(1, 0).tensor("t", sizes, type, begin).data(64));
  };
  EXPECT_EQ(one({4, 4}, kF32, 0), "read");
  EXPECT_THAT(one({4, 4}, kF32, 32), HasSubstr("64 bytes at 32 do not lie in the file"));
  EXPECT_THAT(one({4}, kF32, 4), HasSubstr("not aligned to 32"));
  EXPECT_THAT(one({33}, kQ8, 0), HasSubstr("no whole blocks of Q8_0"));
  EXPECT_THAT(one({std::uint64_t{1} << 40, std::uint64_t{1} << 40}, kF32, 0), HasSubstr("impossible shape"));
  EXPECT_THAT(one({0, 4}, kF32, 0), HasSubstr("impossible shape"));
  EXPECT_THAT(one({1, 1, 1, 1, 1}, kF32, 0), HasSubstr("5 dimensions"));
  EXPECT_THAT(one({256}, 10, 0), HasSubstr("numbers of Q2_K are not read; expected F32, F16, BF16, Q4_0"));
  const auto two = [](std::string_view second, std::uint64_t begin) {
    return message_of(Bytes().head(2, 0).tensor("t", {16}, kF32, 0).tensor(second, {8}, kF32, begin).data(128));
  };
  EXPECT_EQ(two("u", 64), "read");
  EXPECT_THAT(two("t", 64), HasSubstr("has the tensor 't' twice"));
  EXPECT_THAT(two("u", 32), HasSubstr("tensor 'u' begins inside the tensor before it"));
}

TEST(GgufFile, OfAnyOtherLengthIsTruncated) {
  const std::string bytes = read_file(recorded_path("gguf/sentence_piece.gguf")).value();
  ASSERT_TRUE(parse_gguf(bytes, "x.gguf").ok());
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    const bool read = parse_gguf(std::string_view(bytes).substr(0, size), "x.gguf").ok();
    EXPECT_TRUE(!read || size > bytes.size() - 32) << size << ": only what fills up to the alignment may be missing";
  }
}

TEST(GgufFile, NoMutationCrashesIt) {
  RandomStream random(5);
  const std::string bytes = read_file(recorded_path("gguf/sentence_piece.gguf")).value().substr(0, 3000);
  for (int trial = 0; trial < testing::trials(2000); ++trial)
    (void)parse_gguf(testing::mutated(random, bytes), "x.gguf");
}

}  // namespace
}  // namespace carnot
