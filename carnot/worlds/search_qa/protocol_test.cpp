#include "carnot/worlds/search_qa/protocol.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "carnot/core/base/random.h"

namespace carnot {
namespace {

const std::string kSearched =
    "<think> a </think> <search> b </search> <result>\nDoc 1 (Title: X ) is Y .\n</result><think> c </think>";

TEST(SearchProtocol, ASearchIsTheContentOfTheLastOpenedPair) {
  const auto response = parse_search_response("<think> x </think> <search> y <search> Bal Wich mayor </search>\n");
  EXPECT_EQ(response.action, SearchAction::Search);
  EXPECT_EQ(response.text, "Bal Wich mayor");
}

TEST(SearchProtocol, AnAnswerIsWhatStandsBetweenItsTags) {
  const auto response = parse_search_response("<think> x </think> <answer> \\boxed{ Z } </answer> bye");
  EXPECT_EQ(response.action, SearchAction::Answer);
  EXPECT_EQ(response.text, "\\boxed{ Z }");
}

TEST(SearchProtocol, ASearchAtTheEndComesBeforeAnAnswer) {
  EXPECT_EQ(parse_search_response("<answer> a </answer> <search> b </search>").text, "b");
  EXPECT_EQ(parse_search_response("<search> b </search> <answer> a </answer>").text, "a");
}

TEST(SearchProtocol, HalfPairsAreNeither) {
  for (auto text : {"", "only text", "<search> b", "b </search>", "<answer> b", "b </answer>", "</answer> b <answer>"})
    EXPECT_EQ(parse_search_response(text).action, SearchAction::None) << text;
}

TEST(SearchProtocol, AcceptsTheFormatWithAndWithoutSearches) {
  EXPECT_EQ(format_problem("<think>a</think><answer>\\boxed{1}</answer>"), "");
  EXPECT_EQ(format_problem(kSearched + kSearched + " <answer> \\boxed{ Z } </answer>"), "");
  EXPECT_EQ(format_problem("<think> 1 < 2, <b> </thinks> </think> <answer> \\boxed{ Z } </answer>"), "");
}

TEST(SearchProtocol, SaysWhatBreaksTheFormat) {
  const std::string answer = "<answer> \\boxed{ Z } </answer>";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {answer, "no think pair"},
      {"<think> a " + answer, "<think> is not closed before the next tag"},
      {"a </think> " + answer, "</think> without <think>"},
      {"<think> a </think> <answer> \\boxed{ Z }", "<answer> is not closed before the next tag"},
      {"<think> <think> a </think> </think> " + answer, "<think> is not closed before the next tag"},
      {"<think> a </think> <answer> Z </answer>", "no \\boxed{ in the answer"},
      {"<think> \\boxed{ Z } </think> <answer> Z </answer>", "no \\boxed{ in the answer"},
      {"<think> a </think>", "expected one answer pair, got 0"},
      {"<think> a </think> " + answer + answer, "expected one answer pair, got 2"},
      {"<think> a </think> <search> b </search> " + answer, "a search without a result"},
      {"<think> a </think> <result> b </result> " + answer, "a result without a search"},
      {"<result> b </result> <think> a </think> " + answer, "a result without a search"},
      {kSearched + " <result> more </result> " + answer, "a result without a search"},
  };
  for (const auto& [message, problem] : cases) EXPECT_EQ(format_problem(message), problem) << message;
}

// The same rule as a regular expression over one letter a tag: small opens, large closes.
bool is_valid_sequence(const std::string& letters) {
  static const std::regex pairs("(tT|sSrR)*aA(tT|sSrR)*");
  return std::regex_match(letters, pairs) && letters.find("tT") != std::string::npos;
}

TEST(SearchProtocol, JudgesTagSequencesAsTheRegularExpressionDoes) {
  const std::vector<std::pair<std::string, std::string>> tags = {
      {"t", "<think>"},  {"T", "</think>"},  {"s", "<search>"}, {"S", "</search>"},
      {"r", "<result>"}, {"R", "</result>"}, {"a", "<answer>"}, {"A", "\\boxed{} </answer>"}};
  const std::vector<std::string> pieces = {"tT", "sSrR", "aA"};
  int valid = 0;
  for (std::uint64_t trial = 0; trial < 3000; ++trial) {
    RandomStream random(derive_seed(5, "tags", trial));
    std::string letters;
    for (auto n = random.below(5); n > 0; --n)
      letters += random.chance(0.9) ? random.pick(pieces) : random.pick(tags).first;
    std::string message = "<";
    for (char letter : letters) {
      const auto tag = std::ranges::find(tags, std::string(1, letter), &std::pair<std::string, std::string>::first);
      message += " x > " + tag->second + " < /";
    }
    EXPECT_EQ(format_problem(message).empty(), is_valid_sequence(letters)) << letters;
    valid += is_valid_sequence(letters);
  }
  EXPECT_GT(valid, 300);
}

}  // namespace
}  // namespace carnot
