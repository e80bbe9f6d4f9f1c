#include "carnot/core/data/prefix_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "carnot/core/base/random.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Tokens = std::vector<TokenId>;

/// What a model would compute a row from: the tokens up to it, stretch by stretch.
Tokens tokens_up_to(const PrefixTree& tree, std::int64_t row) {
  std::size_t number = 0;
  while (row >= tree.stretches()[number].begin + tree.stretches()[number].rows) ++number;
  Tokens tokens(static_cast<std::size_t>(tree.positions()[static_cast<std::size_t>(row)]) + 1);
  int position = static_cast<int>(tokens.size()) - 1;
  for (int at = static_cast<int>(number); at >= 0; at = tree.stretches()[static_cast<std::size_t>(at)].parent) {
    const PrefixTree::Stretch& stretch = tree.stretches()[static_cast<std::size_t>(at)];
    EXPECT_LT(stretch.parent, at);
    for (; position >= stretch.past; --position)
      tokens[static_cast<std::size_t>(position)] =
          tree.tokens()[static_cast<std::size_t>(stretch.begin + position - stretch.past)];
  }
  EXPECT_EQ(position, -1);
  return tokens;
}

TEST(PrefixTree, HoldsACommonPrefixOnce) {
  PrefixTree tree;
  EXPECT_THAT(tree.add(Tokens{7, 8, 9, 1}), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(tree.num_new_rows(Tokens{7, 8, 9, 2, 3}), 2);
  EXPECT_THAT(tree.add(Tokens{7, 8, 9, 2, 3}), ElementsAre(0, 1, 2, 4, 5));
  EXPECT_THAT(tree.add(Tokens{7, 8, 9, 2, 4}), ElementsAre(0, 1, 2, 4, 6)) << "behind a part of the second stretch";
  EXPECT_THAT(tree.add(Tokens{7, 8}), ElementsAre(0, 1));
  EXPECT_THAT(tree.add(Tokens{7, 8, 9, 1, 5}), ElementsAre(0, 1, 2, 3, 7));
  EXPECT_THAT(tree.add(Tokens{8}), ElementsAre(8));
  EXPECT_THAT(tree.add({}), IsEmpty());
  EXPECT_THAT(tree.positions(), ElementsAre(0, 1, 2, 3, 3, 4, 4, 4, 0));
  EXPECT_EQ(tree.stretches().size(), 5U);
}

TEST(PrefixTree, SharesNothingWithSequencesAddedAlone) {
  PrefixTree tree;
  EXPECT_THAT(tree.add_alone(Tokens{1, 2}), ElementsAre(0, 1));
  EXPECT_THAT(tree.add_alone(Tokens{1, 2}), ElementsAre(2, 3));
  EXPECT_THAT(tree.add(Tokens{1, 2}), ElementsAre(4, 5));
}

TEST(PrefixTree, HasARowForEachDistinctPrefixOfRandomSequences) {
  RandomStream random(3);
  for (int trial = 0; trial < 300; ++trial) {
    PrefixTree tree;
    std::set<Tokens> beginnings;
    for (int s = 0; s < 12; ++s) {
      Tokens tokens;
      for (std::size_t length = random.below(9); tokens.size() < length;)
        tokens.push_back(static_cast<TokenId>(random.below(3)));
      const int before = tree.num_rows(), expected = tree.num_new_rows(tokens);
      const auto rows = tree.add(tokens);
      ASSERT_EQ(tree.num_rows() - before, expected);
      ASSERT_EQ(rows.size(), tokens.size());
      for (std::size_t p = 0; p < tokens.size(); ++p) {
        const Tokens beginning(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(p) + 1);
        ASSERT_EQ(tokens_up_to(tree, rows[p]), beginning);
        beginnings.insert(beginning);
      }
    }
    ASSERT_EQ(static_cast<std::size_t>(tree.num_rows()), beginnings.size());
  }
}

}  // namespace
}  // namespace carnot
