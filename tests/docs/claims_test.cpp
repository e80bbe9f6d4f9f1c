// docs/claims.md has every claim once, with an answer and with references that exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "page.h"

namespace carnot {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::matches;
using ::testing::Not;
using testing::page_text;
using testing::program_says;

constexpr const char* kClaimsPage = "docs/claims.md";

struct Claim {
  std::string id{}, claim{}, answers{}, evidence{}, command{};
};

/// Rows that begin with an id, in order.
std::vector<Claim> claims() {
  std::vector<Claim> all;
  for (const std::string& row : matches(page_text(kClaimsPage), "\n\\| ([A-Za-z0-9]+-[0-9]+ \\|[^\n]*)")) {
    Claim claim;
    std::istringstream cells(row);
    for (std::string* cell : {&claim.id, &claim.claim, &claim.answers, &claim.evidence, &claim.command}) {
      std::getline(cells, *cell, '|');
      cell->erase(0, cell->find_first_not_of(' '));
      cell->erase(cell->find_last_not_of(' ') + 1);
    }
    EXPECT_TRUE(cells.eof() || cells.peek() == EOF) << claim.id << " has more cells than the table";
    all.push_back(std::move(claim));
  }
  return all;
}

TEST(Claims, OfThePapersAreThereOnceEachInOrder) {
  std::vector<std::string> expected, found;
  for (const auto& [paper, count] :
       {std::pair("AEM", 23), std::pair("AEPO", 11), std::pair("A2T", 22), std::pair("AEnt", 6), std::pair("ACT", 18)})
    for (int number = 1; number <= count; ++number) expected.push_back(paper + ("-" + std::to_string(number)));
  for (const Claim& claim : claims()) found.push_back(claim.id);
  EXPECT_EQ(found, expected);
}

TEST(Claims, HaveAnswersOfTheListAndEvidenceForThem) {
  const std::string page = page_text(kClaimsPage);
  const std::size_t begin = page.find("|---|---|\n"), end = page.find("\n## ");
  ASSERT_LT(begin, end);
  std::set<std::string> answers;
  for (const std::string& answer : matches(page.substr(begin, end - begin), "\n\\| ([a-z ]+[a-z]) \\| "))
    answers.insert(answer);
  EXPECT_EQ(answers.size(), 6u);
  for (const Claim& claim : claims()) {
    std::istringstream given(claim.answers);
    for (std::string answer; std::getline(given >> std::ws, answer, ';');)
      EXPECT_EQ(answers.count(answer), 1u) << claim.id << ": " << answer;
    EXPECT_THAT(claim.claim, Not("")) << claim.id;
    EXPECT_THAT(claim.evidence, Not("")) << claim.id;
    if (claim.answers.find("holds by test") != std::string::npos) {
      EXPECT_FALSE(matches(claim.evidence, "`([A-Z][A-Za-z0-9]+\\.[A-Z][A-Za-z0-9]+)`").empty()) << claim.id;
    } else if (claim.answers.find("shows") != std::string::npos) {
      EXPECT_THAT(claim.evidence, HasSubstr("](../bench/results/")) << claim.id;
    }
  }
}

TEST(Claims, NameCommandsAndAnalysesThatExist) {
  const std::string help = program_says({"--help"});
  std::set<std::string> analyses;
  for (const auto& analysis : nlohmann::json::parse(program_says({"list", "analyses", "--json"})))
    analyses.insert(analysis.at("name").get<std::string>());
  for (const Claim& claim : claims()) {
    for (const std::string& command : matches(claim.command, "`carnot ([a-z]+)"))
      EXPECT_THAT(help, HasSubstr("carnot " + command + " "));
    for (const std::string& name : matches(claim.command, "`carnot analyze ([a-z0-9-]+)"))
      EXPECT_EQ(analyses.count(name), 1u) << claim.id << ": " << name;
    EXPECT_THAT(claim.command, AnyOf("", "`./run test`", HasSubstr("`carnot "))) << claim.id;
  }
}

}  // namespace
}  // namespace carnot
