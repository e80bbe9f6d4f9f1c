#include "carnot/core/gguf/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "carnot/core/base/file.h"
#include "carnot/core/gguf/file.h"
#include "carnot/core/gguf/metadata.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GgufWriter : public ::testing::Test {
 protected:
  ~GgufWriter() override { fs::remove(path_); }

  const fs::path path_ = fs::temp_directory_path() / ("carnot_gguf_writer_" + std::to_string(::getpid()));
};

/// Its numbers are 0, 1, 2, ...
GgufPendingTensor counting(const std::string& name, std::vector<std::int64_t> shape, const char* type) {
  return {.name = name,
          .shape = std::move(shape),
          .type = &gguf_block_type(type),
          .read_row = [](std::int64_t row, std::span<float> values) {
            for (std::size_t i = 0; i < values.size(); ++i)
              values[i] =
                  static_cast<float>(row * static_cast<std::int64_t>(values.size()) + static_cast<std::int64_t>(i));
          }};
}

TEST_F(GgufWriter, WritesKeysOfEachKindThatAreReadBack) {
  const GgufSettings settings{{"flag", true},
                              {"count", std::uint32_t{7}},
                              {"number", 1e-5F},
                              {"text", std::string("caf\u00e9\0", 6)},
                              {"types", std::vector<std::int32_t>{1, -3}},
                              {"scores", std::vector<float>{-1, 0.1F}},
                              {"tokens", std::vector<std::string>{"a", "", "\u4f60"}}};
  ASSERT_TRUE(write_gguf(path_, settings, {}).ok());
  const std::string bytes = read_file(path_).value();
  const auto file = parse_gguf(bytes, "x.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  GgufMetadata metadata(*file, "x.gguf");
  EXPECT_EQ(file->values.size(), settings.size());
  EXPECT_EQ(metadata.flag("flag"), true);
  EXPECT_EQ(metadata.integer("count"), 7);
  EXPECT_EQ(metadata.number("number"), 1e-5);
  EXPECT_EQ(metadata.text("text"), std::string("caf\u00e9\0", 6));
  EXPECT_THAT(metadata.integers("types").value(), ElementsAre(1, -3));
  EXPECT_THAT(metadata.numbers("scores").value(), ElementsAre(-1, 0.1));
  EXPECT_THAT(metadata.texts("tokens").value(), ElementsAre("a", "", "\u4f60"));
  EXPECT_FALSE(metadata.any_problems());
}

TEST_F(GgufWriter, WritesTensorsOfEachTypeThatAreReadBack) {
  std::vector<GgufPendingTensor> tensors{counting("vector", {3}, "F32"), counting("matrix", {5, 64}, "Q8_0"),
                                         counting("odd", {3, 7}, "F16"), counting("last", {1, 1}, "BF16")};
  ASSERT_TRUE(write_gguf(path_, {}, tensors).ok());
  const std::string bytes = read_file(path_).value();
  const auto file = parse_gguf(bytes, "x.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_EQ(file->tensors.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const GgufTensor& read = file->tensors[i];
    SCOPED_TRACE(read.name);
    EXPECT_EQ(read.name, tensors[i].name);
    EXPECT_EQ(read.shape, tensors[i].shape);
    ASSERT_EQ(read.type, tensors[i].type);
    std::vector<float> values(read.bytes.size() / static_cast<std::size_t>(read.type->bytes) *
                              static_cast<std::size_t>(read.type->values));
    dequantize(*read.type, read.bytes, values);
    const double tolerance = read.type->name == "Q8_0" ? 320.0 / 254 : 0;
    for (std::size_t j = 0; j < values.size(); ++j) EXPECT_NEAR(values[j], j, tolerance);
  }
}

TEST_F(GgufWriter, OfATooLargeNumberLeavesTheFileAsItWas) {
  ASSERT_TRUE(write_file_atomically(path_, "mine").ok());
  GgufPendingTensor large = counting("large", {2, 2}, "F16");
  large.read_row = [](std::int64_t row, std::span<float> values) { values[0] = values[1] = row == 0 ? 65519 : 65520; };
  const Status written = write_gguf(path_, {}, {counting("small", {4}, "F32"), large});
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().message, HasSubstr("tensor 'large' has numbers that are too large for F16"));
  EXPECT_EQ(*read_file(path_), "mine");
}

}  // namespace
}  // namespace carnot
