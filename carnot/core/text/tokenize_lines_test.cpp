#include "carnot/core/text/tokenize_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "carnot/core/text/bpe_training.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;

const Tokenizer& line_tokenizer() {
  static const Tokenizer trained =
      Tokenizer::parse(train_byte_level_bpe(std::vector<std::string>{}, {.vocab_size = 256}).value(), "bytes").value();
  return trained;
}

TEST(TokenizeLines, StringsBecomeIdsAndComeBack) {
  std::istringstream in("\"a b\"\n\"\"\n\"\\u00e9\\n\"");
  std::ostringstream ids;
  ASSERT_TRUE(encode_lines(line_tokenizer(), in, ids).ok());
  EXPECT_EQ(ids.str(), "[97,32,98]\n[]\n[195,169,10]\n");
  std::istringstream back(ids.str());
  std::ostringstream text;
  ASSERT_TRUE(decode_lines(line_tokenizer(), back, text).ok());
  EXPECT_EQ(text.str(), "\"a b\"\n\"\"\n\"é\\n\"\n");
}

TEST(TokenizeLines, TheFirstBadLineIsNamedAndThoseBeforeAreWritten) {
  const auto encode = [](const std::string& input) {
    std::istringstream in(input);
    std::ostringstream out;
    const auto status = encode_lines(line_tokenizer(), in, out);
    return out.str() + (status.ok() ? "fine" : status.error().message);
  };
  EXPECT_THAT(encode("\"a\"\n12\n\"b\""), HasSubstr("[97]\nline 2: expected a JSON string, got 12"));
  EXPECT_THAT(encode("\"a\n"), HasSubstr("line 1: not JSON"));
  EXPECT_THAT(encode("\"\\ud800\"\n"), HasSubstr("line 1: not JSON"));
}

TEST(TokenizeLines, IdsThatAreNoneAreNamed) {
  const auto decode = [](const std::string& input) {
    std::istringstream in(input);
    std::ostringstream out;
    const auto status = decode_lines(line_tokenizer(), in, out);
    return out.str() + (status.ok() ? "fine" : status.error().message);
  };
  EXPECT_THAT(decode("[97]\n[256]\n"), HasSubstr("line 2: 256 is not a token id"));
  EXPECT_THAT(decode("[-1]\n"), HasSubstr("line 1: -1 is not a token id"));
  EXPECT_THAT(decode("[1e99]\n"), HasSubstr("is not a token id"));
  EXPECT_THAT(decode("[18446744073709551615]\n"), HasSubstr("is not a token id"));
  EXPECT_THAT(decode("{}\n"), HasSubstr("expected a JSON array"));
  EXPECT_EQ(decode("[255, 97]\n"),
            "\"\xEF\xBF\xBD"
            "a\"\nfine");
}

}  // namespace
}  // namespace carnot
