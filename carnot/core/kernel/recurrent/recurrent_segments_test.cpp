#include "carnot/core/kernel/recurrent/recurrent_segments.h"

#include <gtest/gtest.h>

#include <vector>

#include "carnot/core/base/check.h"

namespace carnot::kernel {
namespace {

TEST(RecurrentSegments, EndEvery64RowsAndWhereAnotherSequenceStarts) {
  const RecurrentRows rows[] = {{.begin = 0, .rows = 130},
                                {.begin = 130, .rows = 5, .past = 70, .parent = 0},
                                {.begin = 135, .rows = 3},
                                {.begin = 138, .rows = 2, .past = 64, .parent = 1},
                                {.begin = 140, .rows = 1, .past = 75, .parent = 1}};
  const std::vector<RecurrentTree> trees = recurrent_trees(rows);
  ASSERT_EQ(trees.size(), 2);
  EXPECT_EQ(trees[0].rows, 138);
  EXPECT_EQ(trees[1].rows, 3);
  struct Expected {
    std::int64_t begin;
    int rows, before, successors;
    bool last_behind;
  };
  const std::vector<Expected> expected = {{0, 64, -1, 2, false}, {64, 6, 0, 2, false}, {70, 58, 1, 1, false},
                                          {128, 2, 2, 0, true},  {130, 5, 1, 1, true}, {138, 2, 0, 0, true},
                                          {140, 1, 4, 0, true}};
  ASSERT_EQ(trees[0].segments.size(), expected.size());
  std::int64_t in_tree = 0;
  for (std::size_t s = 0; s < expected.size(); ++s) {
    const RecurrentSegment& segment = trees[0].segments[s];
    EXPECT_EQ(segment.begin, expected[s].begin) << s;
    EXPECT_EQ(segment.rows, expected[s].rows) << s;
    EXPECT_EQ(segment.before, expected[s].before) << s;
    EXPECT_EQ(segment.successors, expected[s].successors) << s;
    EXPECT_EQ(segment.last_behind, expected[s].last_behind) << s;
    EXPECT_EQ(segment.in_tree, in_tree) << s;
    in_tree += segment.rows;
  }
}

TEST(RecurrentSegments, RefuseAStartBehindTheParentsEndAndAPastWithoutAParent) {
  const RecurrentRows too_far[] = {{.begin = 0, .rows = 4}, {.begin = 4, .rows = 1, .past = 5, .parent = 0}};
  EXPECT_THROW(recurrent_trees(too_far), CheckError);
  const RecurrentRows alone[] = {{.begin = 0, .rows = 4, .past = 5}};
  EXPECT_THROW(recurrent_trees(alone), CheckError);
  const RecurrentRows backwards[] = {{.begin = 0, .rows = 4, .past = 1, .parent = 1}, {.begin = 4, .rows = 4}};
  EXPECT_THROW(recurrent_trees(backwards), CheckError);
}

}  // namespace
}  // namespace carnot::kernel
