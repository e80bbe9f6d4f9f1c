#include "carnot/core/text/word_piece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(WordPiece, FindsTheWordsAndIdsThatTransformersDoes) {
  const auto tokenizer = WordPieceTokenizer::load(source_path("tests/golden/sentence_encoder/vocab.txt")).value();
  const std::string recorded = read_file(source_path("tests/golden/sentence_encoder/expected.jsonl")).value();
  int texts = 0;
  for (const std::string_view line : split_lines(recorded)) {
    const auto expected = nlohmann::json::parse(line);
    const auto text = expected["text"].get<std::string>();
    EXPECT_EQ(bert_words(text), expected["words"].get<std::vector<std::string>>()) << text;
    EXPECT_EQ(tokenizer.encode(text, 16), expected["ids"].get<std::vector<TokenId>>()) << text;
    ++texts;
  }
  EXPECT_GE(texts, 12);
}

TEST(WordPiece, TakesTheLongestPiecesAndCutsALongText) {
  const auto tokenizer =
      WordPieceTokenizer::parse("[UNK]\n[CLS]\n[SEP]\nun\nunab\n##able\n##le\nx\n##x\n", "vocab").value();
  EXPECT_THAT(tokenizer.encode("unable Unable zebra", 100), ElementsAre(1, 4, 6, 4, 6, 0, 2));
  EXPECT_THAT(tokenizer.encode("unable unable", 4), ElementsAre(1, 4, 6, 2));
  EXPECT_THAT(tokenizer.encode("", 2), ElementsAre(1, 2));
  EXPECT_THAT(tokenizer.encode(std::string(101, 'x'), 5), ElementsAre(1, 0, 2)) << "more than a hundred characters";
  EXPECT_EQ(tokenizer.encode(std::string(100, 'x'), 1000).size(), 102u);
}

TEST(WordPiece, SaysWhatAVocabularyLacks) {
  const auto problem = WordPieceTokenizer::parse("a\n[CLS]\na\n", "v.txt").error().message;
  EXPECT_THAT(problem, HasSubstr("v.txt:3: \"a\" occurs twice"));
  EXPECT_THAT(problem, HasSubstr("v.txt: has no [UNK]"));
  EXPECT_THAT(problem, HasSubstr("v.txt: has no [SEP]"));
}

}  // namespace
}  // namespace carnot
