#include "carnot/worlds/reward/answer_metrics.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

using Golds = std::vector<std::string>;

TEST(AnswerMetrics, NormaliseCasePunctuationArticlesAndBlanks) {
  EXPECT_EQ(normalize_answer("  The  Beatles' (band), an English a group. "), "beatles band english group");
  EXPECT_EQ(normalize_answer("U.S.A."), "usa");
  EXPECT_EQ(normalize_answer("theatre another"), "theatre another");
  EXPECT_EQ(normalize_answer("a-the"), "athe") << "punctuation goes before articles are looked for";
  EXPECT_EQ(normalize_answer("\xc3\x89"
                             "COLE\xc2\xa0the \xc3\xa9t\xc3\xa9"),
            "\xc3\xa9"
            "cole \xc3\xa9t\xc3\xa9");
  EXPECT_EQ(normalize_answer("a\xe2\x80\x93the"), "\xe2\x80\x93") << "a dash beyond ASCII stays, and ends words";
  EXPECT_EQ(normalize_answer("\xff"
                             "A b"),
            "\xff b");
  EXPECT_EQ(normalize_answer("the"), "");
}

TEST(AnswerMetrics, ExactMatchAcceptsAnyGoldAnswer) {
  EXPECT_TRUE(exact_match(" the Zorville . ", Golds{"Balwich", "Zorville"}));
  EXPECT_FALSE(exact_match("Zorville Balwich", Golds{"Balwich", "Zorville"}));
  EXPECT_FALSE(exact_match("Zorville", Golds{}));
}

TEST(AnswerMetrics, ContainmentLooksForTheGoldInThePrediction) {
  EXPECT_TRUE(contains_answer("It is Zorville, of course", Golds{"zorville"}));
  EXPECT_FALSE(contains_answer("Zorville", Golds{"Zorville Castle"}));
}

TEST(AnswerMetrics, F1CountsCommonWordsAsABag) {
  EXPECT_DOUBLE_EQ(answer_f1("a b b c", Golds{"b b d"}), 2.0 * 2 / (3 + 3));
  EXPECT_DOUBLE_EQ(answer_f1("Bal Wich", Golds{"Wich", "Bal wich"}), 1);
  EXPECT_DOUBLE_EQ(answer_f1("x", Golds{"y"}), 0);
  EXPECT_DOUBLE_EQ(answer_f1("", Golds{""}), 0);
}

TEST(AnswerMetrics, F1GivesNothingForAVerdictThatIsOnlyPartOfTheText) {
  EXPECT_DOUBLE_EQ(answer_f1("yes", Golds{"yes it is"}), 0);
  EXPECT_DOUBLE_EQ(answer_f1("no way", Golds{"no"}), 0);
  EXPECT_DOUBLE_EQ(answer_f1("No.", Golds{"no"}), 1);
}

TEST(AnswerMetrics, GoldAnswersAreSplitAtTheirMark) {
  EXPECT_EQ(split_gold_answers("one<|answer_split|> two words <|answer_split|>"), (Golds{"one", "two words", ""}));
  EXPECT_EQ(split_gold_answers("one | two"), (Golds{"one | two"}));
}

TEST(AnswerMetrics, TheBoxEndsAtTheBraceThatBalancesIt) {
  EXPECT_EQ(boxed_content("so \\boxed{ Zorville } end"), "Zorville");
  EXPECT_EQ(boxed_content("\\boxed{\\frac{1}{2}} and }"), "\\frac{1}{2}");
  EXPECT_EQ(boxed_content("\\boxed{1} then \\boxed{2}"), "2");
  EXPECT_EQ(boxed_content("\\boxed{\\{1, 2\\}}"), "\\{1, 2\\}");
  EXPECT_EQ(boxed_content("\\boxed{}"), "");
  EXPECT_EQ(boxed_content("\\boxed{1} then \\boxed{2"), std::nullopt);
  EXPECT_EQ(boxed_content("\\boxed{a\\"), std::nullopt);
  EXPECT_EQ(boxed_content("boxed{1}"), std::nullopt);
}

}  // namespace
}  // namespace carnot
