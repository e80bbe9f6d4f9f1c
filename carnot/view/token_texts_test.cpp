#include <gtest/gtest.h>

#include "carnot/core/base/utf8.h"
#include "carnot/view/page.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using testing::small_tokenizer;

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text;
  return all;
}

TEST(TokenTexts, JoinedAreTheTextWhateverTheTokensSplit) {
  const Tokenizer& tokenizer = small_tokenizer();
  for (const char* text : {"answer left", "caf\u00e9 \u4e16\u754c \U0001f600\U0001f600!", "\u00e9\u00e9\u00e9",
                           "a\xff b", "\xf0\x9f", "<|im_start|>user\n\x1b[2J</script>"})
    EXPECT_EQ(joined(token_texts(tokenizer.encode(text), tokenizer)), with_replacement_characters(text));
}

TEST(TokenTexts, OfACharacterInSeveralTokensAreAtTheFirst) {
  const Tokenizer& tokenizer = small_tokenizer();
  const std::vector<TokenId> tokens = tokenizer.encode("a\u4e16b");
  ASSERT_EQ(tokens.size(), 5u);
  EXPECT_EQ(token_texts(tokens, tokenizer), (std::vector<std::string>{"a", "\u4e16", "", "", "b"}));
}

}  // namespace
}  // namespace carnot
