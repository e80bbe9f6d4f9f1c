#include "carnot/core/text/merge_table.h"

#include <gtest/gtest.h>

#include <string>

#include "carnot/core/base/random.h"
#include "reference/byte_pair_merging.h"

namespace carnot {
namespace {

/// A random list of merges over the letters "a", "b", "c", with the token strings by id.
struct RandomMerges {
  explicit RandomMerges(RandomStream& random) : tokens{"a", "b", "c"} {
    while (tokens.size() < 30) {
      const std::size_t left = random.below(tokens.size());
      const std::size_t right = random.below(tokens.size());
      const std::string joined = tokens[left] + tokens[right];
      // Two ways to one token may both be merges; one pair has one rank.
      auto known = std::find(tokens.begin(), tokens.end(), joined);
      const auto result = static_cast<TokenId>(known - tokens.begin());
      if (known == tokens.end()) tokens.push_back(joined);
      const auto pair = std::pair(tokens[left], tokens[right]);
      if (std::find(pairs.begin(), pairs.end(), pair) != pairs.end()) continue;
      pairs.push_back(pair);
      merges.push_back({static_cast<TokenId>(left), static_cast<TokenId>(right), result});
    }
  }

  std::vector<std::string> tokens;
  std::vector<std::pair<std::string, std::string>> pairs;
  std::vector<Merge> merges;
};

TEST(MergeTable, MatchesTheDefinitionOnRandomMergesAndStrings) {
  RandomStream random(4);
  MergeTable::Scratch scratch;
  for (int trial = 0; trial < 300; ++trial) {
    const RandomMerges rules(random);
    const MergeTable table(rules.merges);
    // Beyond 48 symbols the table works with a heap.
    const int length = static_cast<int>(random.below(trial % 3 == 0 ? 150 : 40));
    std::vector<TokenId> tokens;
    std::vector<std::string> symbols;
    for (int i = 0; i < length; ++i) {
      tokens.push_back(static_cast<TokenId>(random.below(3)));
      symbols.push_back(rules.tokens[tokens.back()]);
    }
    table.merge(tokens, scratch);
    std::vector<std::string> merged;
    for (const TokenId token : tokens) merged.push_back(rules.tokens[token]);
    ASSERT_EQ(merged, reference::merge_pairs(symbols, rules.pairs)) << "trial " << trial;
  }
}

TEST(MergeTable, OfTwoRanksOfOnePairTheLaterCounts) {
  const MergeTable table({{0, 1, 3}, {1, 2, 4}, {0, 1, 3}});
  std::vector<TokenId> tokens{0, 1, 2};
  MergeTable::Scratch scratch;
  table.merge(tokens, scratch);
  EXPECT_EQ(tokens, (std::vector<TokenId>{0, 4}));
}

TEST(MergeTable, WithoutMergesNothingChanges) {
  std::vector<TokenId> tokens(100, 7);
  MergeTable::Scratch scratch;
  MergeTable({}).merge(tokens, scratch);
  EXPECT_EQ(tokens, std::vector<TokenId>(100, 7));
}

}  // namespace
}  // namespace carnot
