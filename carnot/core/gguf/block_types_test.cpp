#include "carnot/core/gguf/block_types.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using nlohmann::json;

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

// Recorded by tools/golden/gguf_files.py.
TEST(GgufBlockType, OfEveryKindGivesTheBitsThatThePackageGgufGives) {
  const std::string text = read_maybe_compressed(recorded_path("gguf/blocks.jsonl.xz")).value();
  int types = 0;
  for (const std::string_view line : split_lines(text)) {
    const json recorded = json::parse(line);
    SCOPED_TRACE(recorded.at("type"));
    const GgufBlockType* type = find_gguf_block_type(recorded.at("number").get<std::uint32_t>());
    ASSERT_NE(type, nullptr);
    EXPECT_EQ(type->name, recorded.at("type").get<std::string>());
    const std::string blocks = bytes_of_hex(recorded.at("blocks")), expected = bytes_of_hex(recorded.at("values"));
    std::vector<float> values(expected.size() / sizeof(float));
    dequantize(*type, blocks, values);
    EXPECT_EQ(std::memcmp(values.data(), expected.data(), expected.size()), 0);
    ++types;
  }
  EXPECT_EQ(types, 11);
}

// Recorded by tools/golden/gguf_files.py.
TEST(GgufBlockType, ThatIsWrittenHasTheBytesThatThePackageGgufWrites) {
  const std::string text = read_maybe_compressed(recorded_path("gguf/quantized.jsonl.xz")).value();
  const std::vector<std::string_view> lines = split_lines(text);
  EXPECT_EQ(lines.size(), 4u);
  for (const std::string_view line : lines) {
    const json recorded = json::parse(line);
    SCOPED_TRACE(recorded.at("type"));
    const std::string numbers = bytes_of_hex(recorded.at("values"));
    std::vector<float> values(numbers.size() / sizeof(float));
    std::memcpy(values.data(), numbers.data(), numbers.size());
    std::string blocks;
    EXPECT_TRUE(quantize(gguf_block_type(recorded.at("type").get<std::string>()), values, blocks));
    EXPECT_EQ(blocks, bytes_of_hex(recorded.at("blocks")));
  }
}

TEST(GgufBlockType, ThatIsWrittenSaysWhichNumbersAreTooLarge) {
  const auto fits = [](const char* type, float value) {
    std::string blocks;
    return quantize(gguf_block_type(type), std::vector<float>(32, -value), blocks);
  };
  EXPECT_TRUE(fits("F32", 3.4e38F) && fits("BF16", 3.38e38F) && fits("F16", 65519) && fits("Q8_0", 65519 * 127.F));
  EXPECT_FALSE(fits("BF16", 3.4e38F) || fits("F16", 65520) || fits("F16", 1e30F) || fits("Q8_0", 65520 * 127.F));
  EXPECT_TRUE(fits("Q8_0", 1e-44F)) << "a scale whose inverse is infinite";
}

TEST(GgufBlockType, ThatIsNotReadHasANameForTheMessage) {
  EXPECT_EQ(find_gguf_block_type(10), nullptr);
  EXPECT_EQ(gguf_type_name(10), "Q2_K");
  EXPECT_EQ(gguf_type_name(14), "Q6_K");
  EXPECT_EQ(gguf_type_name(4'000'000'000), "type 4000000000");
}

TEST(GgufBlockType, TakesWholeBlocksOnly) {
  std::vector<float> values(32);
  EXPECT_THROW(dequantize(*find_gguf_block_type(2), std::string(17, 'x'), values), CheckError);
}

}  // namespace
}  // namespace carnot
