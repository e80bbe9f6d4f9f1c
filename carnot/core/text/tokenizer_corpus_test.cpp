// Random texts, every text of GSM8K and code against Hugging Face tokenizers (tools/golden/tokenizer_corpus.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/text/tokenizer.h"
#include "testing/qwen2_tokenizer.h"

namespace carnot {
namespace {

using nlohmann::json;

const std::string kRecorded = source_path("tests/golden/tokenizer/");
constexpr std::size_t kBatch = 64;

struct Stretch {
  char32_t first, last;
};
constexpr Stretch kStretches[] = {
    {0x61, 0x7A},      {0x41, 0x5A},     {0x30, 0x39},     {0x20, 0x20},       {0x21, 0x2F},       {0x3A, 0x40},
    {0x5B, 0x60},      {0x09, 0x0D},     {0x00, 0x1F},     {0xC0, 0x17F},      {0x300, 0x36F},     {0x391, 0x3A1},
    {0x3B1, 0x3C9},    {0x410, 0x44F},   {0x5D0, 0x5EA},   {0x621, 0x64A},     {0x660, 0x669},     {0x905, 0x939},
    {0xE01, 0xE30},    {0x1100, 0x1112}, {0x1161, 0x1175}, {0xAC00, 0xD7A3},   {0x4E00, 0x9FA5},   {0x3041, 0x3096},
    {0x2000, 0x200F},  {0x2028, 0x202F}, {0x2070, 0x2071}, {0x2150, 0x2182},   {0x2190, 0x21FF},   {0x2581, 0x2581},
    {0x3000, 0x3003},  {0xFE0E, 0xFE0F}, {0xFF01, 0xFF5E}, {0x1D400, 0x1D454}, {0x1F1E6, 0x1F1FF}, {0x1F3FB, 0x1F3FF},
    {0x1F600, 0x1F640}};
constexpr const char* kWords[] = {"std::vector<int> a{1, 2};",
                                  "def f(x):\n\treturn x**2",
                                  "\t\tif (a != b) {\n",
                                  "0xFF",
                                  "// don't",
                                  "'''",
                                  "\\n",
                                  "I'LL we've",
                                  "1234567.89",
                                  "<|end|>",
                                  "<s>",
                                  "</s>",
                                  "[INST]",
                                  "<b>",
                                  " <b> ",
                                  "x<b>y",
                                  "  \n  \n",
                                  "\r\n\r\n",
                                  "caf\u00E9",
                                  "cafe\u0301",
                                  "\u1112\u1161\u11AB",
                                  "\U0001F469\u200D\U0001F4BB",
                                  "e\u0323\u0302",
                                  "$5.00",
                                  "https://a.b/c?d=e&f",
                                  "\u2581\u2581",
                                  "   ",
                                  "...",
                                  "#include <map>"};

/// The texts of random_lines() in the script.
std::vector<std::string> random_lines(int count) {
  std::uint64_t state = 1;
  const auto below = [&](std::uint64_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
  };
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i) {
    std::string line;
    for (std::uint64_t parts = 1 + below(24); parts > 0; --parts) {
      if (below(3) == 0) {
        line += kWords[below(std::size(kWords))];
        continue;
      }
      const Stretch stretch = kStretches[below(std::size(kStretches))];
      for (std::uint64_t characters = 1 + below(5); characters > 0; --characters)
        append_utf8(line, stretch.first + static_cast<char32_t>(below(stretch.last - stretch.first + 1)));
    }
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> gsm8k() {
  std::vector<std::string> texts;
  for (const char* split : {"train", "test"}) {
    const auto file = read_maybe_compressed(published_path("gsm8k/") + split + ".jsonl.xz");
    for (const std::string_view line : split_lines(*file)) {
      if (line.empty()) continue;
      const json row = json::parse(line);
      texts.push_back(row.at("question").get<std::string>() + "\n" + row.at("answer").get<std::string>());
    }
  }
  return texts;
}

/// Patches to Python projects, and the reports that they answer.
std::vector<std::string> code() {
  std::vector<std::string> texts;
  const auto file = read_file(published_path("swe/instances.jsonl"));
  for (const std::string_view line : split_lines(*file)) {
    if (line.empty()) continue;
    const json row = json::parse(line);
    for (const char* key : {"patch", "test_patch", "problem_statement"}) texts.push_back(row.at(key));
  }
  return texts;
}

class Fnv {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) value_ = (value_ ^ static_cast<std::uint8_t>(byte)) * 0x100000001B3u;
  }
  void add(std::uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) value_ = (value_ ^ (number >> shift & 0xFF)) * 0x100000001B3u;
  }
  std::string text() const {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value_));
    return digits;
  }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325u;
};

std::string hash_of(const Tokenizer& tokenizer, std::span<const std::string> texts) {
  Fnv hash;
  for (const std::string& text : texts) {
    const auto ids = tokenizer.encode(text);
    for (const TokenId id : ids) hash.add(static_cast<std::uint32_t>(id));
    hash.add(0xFFFFFFFFu);
    hash.add(tokenizer.decode_whole(ids));
    hash.add(std::string_view("\0", 1));
  }
  return hash.text();
}

void expect_hashes(const Tokenizer& tokenizer, const std::vector<std::string>& texts, const json& expected) {
  ASSERT_EQ((texts.size() + kBatch - 1) / kBatch, expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto batch = std::span(texts).subspan(i * kBatch, std::min(kBatch, texts.size() - i * kBatch));
    EXPECT_EQ(hash_of(tokenizer, batch), expected[i]) << "batch " << i << ", its first text: " << batch[0];
  }
}

Tokenizer recorded_tokenizer(const std::string& name) {
  if (name == "qwen2") return Tokenizer::load(testing::published_qwen2_folder()).value();
  return Tokenizer::load(kRecorded + name + (name == "qwen2_small" ? "" : ".json")).value();
}

TEST(TokenizerCorpus, EncodesAndDecodesRandomTextAsHuggingFace) {
  const auto lines = random_lines(2048);
  for (const json& one : json::parse(*read_file(kRecorded + "corpus.json"))) {
    const std::string name = one.at("name");
    SCOPED_TRACE(name);
    if (name != "qwen2") expect_hashes(recorded_tokenizer(name), lines, one.at("random"));
  }
}

TEST(TokenizerCorpus, EncodesAndDecodesAllOfGsm8kAndCodeAsHuggingFace) {
  CARNOT_NEEDS_PUBLISHED_DATA();
  const auto problems = gsm8k(), programs = code();
  EXPECT_EQ(problems.size(), 8792u);
  for (const json& one : json::parse(*read_file(kRecorded + "corpus.json"))) {
    const std::string name = one.at("name");
    SCOPED_TRACE(name);
    const Tokenizer tokenizer = recorded_tokenizer(name);
    expect_hashes(tokenizer, problems, one.at("gsm8k"));
    expect_hashes(tokenizer, programs, one.at("code"));
    if (name == "qwen2") expect_hashes(tokenizer, random_lines(2048), one.at("random"));
  }
}

}  // namespace
}  // namespace carnot
