// The gated delta rule of sequences that continue each other's rows, as packed for training.
#include <gtest/gtest.h>

#include <vector>

#include "carnot/core/kernel/recurrent/gated_delta.h"
#include "testing/gated_delta_problem.h"

namespace carnot::kernel {
namespace {

using testing::DeltaShape;
using testing::GatedDelta;
using testing::GatedDeltaProblem;
using testing::kDeltaShapes;
using testing::relative_error;

TYPED_TEST_SUITE(GatedDelta, testing::DeltaTypes);

/// A run of rows that continues the first positions of an earlier one.
struct DeltaBranch {
  int parent, past, rows;
};
/// Continuing all of another one; a part of it that ends within a segment or at its end; a position that the previous
/// one continues, too, or where it starts; nothing of it; alone; none and one row.
constexpr DeltaBranch kDeltaBranches[] = {{-1, 0, 137}, {0, 137, 20}, {0, 21, 70}, {2, 91, 5}, {2, 64, 9}, {0, 64, 66},
                                          {-1, 0, 12},  {3, 10, 4},   {2, 21, 3},  {0, 0, 7},  {0, 64, 0}, {6, 12, 1}};
constexpr int kBranchCount = static_cast<int>(std::size(kDeltaBranches));

template <class S>
GatedDeltaProblem<S> branched(const DeltaShape& shape) {
  std::vector<int> lengths;
  for (const DeltaBranch& branch : kDeltaBranches) lengths.push_back(branch.rows);
  GatedDeltaProblem<S> problem(shape, lengths);
  for (std::size_t s = 0; s < std::size(kDeltaBranches); ++s) {
    problem.sequences[s].parent = kDeltaBranches[s].parent;
    problem.sequences[s].past = kDeltaBranches[s].past;
  }
  return problem;
}

/// The rows of a branch and of all that it continues, by position.
std::vector<std::int64_t> path_to(int branch) {
  if (branch < 0) return {};
  std::vector<std::int64_t> path = path_to(kDeltaBranches[branch].parent);
  path.resize(static_cast<std::size_t>(kDeltaBranches[branch].past));
  std::int64_t begin = 0;
  for (int b = 0; b < branch; ++b) begin += kDeltaBranches[b].rows;
  for (int r = 0; r < kDeltaBranches[branch].rows; ++r) path.push_back(begin + r);
  return path;
}

TYPED_TEST(GatedDelta, BehindASharedPrefixEqualsTheWholePathBitForBit) {
  for (const DeltaShape& shape : kDeltaShapes) {
    const GatedDeltaProblem<TypeParam> problem = branched<TypeParam>(shape);
    const std::vector<TypeParam> together = problem.forward();
    set_num_threads(3);
    EXPECT_EQ(together, problem.forward());
    set_num_threads(1);
    for (int b = 0; b < kBranchCount; ++b) {
      const std::vector<std::int64_t> path = path_to(b);
      EXPECT_EQ(problem.path(path).forward(), problem.rows_of(together, problem.out_width(), path)) << "branch " << b;
    }
  }
}

/// Adds the rows of a path's gradient to those of all; parameters are at the end of both.
void add_path(const std::vector<double>& of_path, const std::vector<std::int64_t>& path, std::int64_t rows,
              const std::vector<std::int64_t>& widths, std::int64_t parameters, std::vector<double>& all) {
  std::size_t from = 0;
  std::int64_t to = 0;
  for (const std::int64_t width : widths) {
    for (const std::int64_t row : path)
      for (std::int64_t i = 0; i < width; ++i) all[static_cast<std::size_t>(to + row * width + i)] += of_path[from++];
    to += rows * width;
  }
  for (std::int64_t i = 0; i < parameters; ++i) all[static_cast<std::size_t>(to + i)] += of_path[from++];
}

TYPED_TEST(GatedDelta, BehindASharedPrefixHasTheSumOfThePathsGradients) {
  for (const DeltaShape& shape : kDeltaShapes) {
    const GatedDeltaProblem<TypeParam> problem = branched<TypeParam>(shape);
    const std::vector<double> got = problem.backward();
    set_num_threads(3);
    EXPECT_EQ(got, problem.backward());
    set_num_threads(1);
    std::vector<double> expected(got.size(), 0.0);
    for (int b = 0; b < kBranchCount; ++b) {
      const std::vector<std::int64_t> path = path_to(b);
      // The share of the loss that belongs to its own rows.
      const std::vector<double> of_path =
          problem.path(path, static_cast<std::size_t>(kDeltaBranches[b].past)).backward();
      add_path(of_path, path, problem.rows, {problem.layer().width(), shape.value_heads, shape.value_heads},
               2 * shape.value_heads, expected);
    }
    EXPECT_LT(relative_error(got, expected), this->kTolerance) << shape.key_dim << " x " << shape.value_dim;
  }
}

}  // namespace
}  // namespace carnot::kernel
