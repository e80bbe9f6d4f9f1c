// Attention of sequences that continue each other's rows, as packed for training.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "carnot/core/kernel/attention/attention.h"
#include "testing/attention_problem.h"

namespace carnot::kernel {
namespace {

using testing::Attention;
using testing::AttentionProblem;
using testing::AttentionShape;
using testing::kAttentionShapes;
using testing::path_problem;

TYPED_TEST_SUITE(Attention, testing::StoredTypes);

/// A run of rows that continues the first positions of an earlier one.
struct Branch {
  int parent, past, rows;
};
/// Continuing all of another one; a part of it that ends within a block or at its end; a position that the previous one
/// continues, too; alone; and one row.
constexpr Branch kBranches[] = {{-1, 0, 37}, {0, 37, 20}, {0, 21, 30}, {2, 51, 5}, {2, 32, 9},
                                {-1, 0, 12}, {3, 10, 4},  {0, 16, 1},  {5, 12, 40}};

template <class S>
AttentionProblem<S> branched_problem(const AttentionShape& shape) {
  std::vector<int> lengths;
  for (const Branch& branch : kBranches) lengths.push_back(branch.rows);
  AttentionProblem<S> problem(shape, lengths);
  for (std::size_t s = 0; s < std::size(kBranches); ++s) {
    problem.sequences[s].parent = kBranches[s].parent;
    problem.sequences[s].past = kBranches[s].past;
    for (int r = 0; r < kBranches[s].rows; ++r)
      problem.positions[static_cast<std::size_t>(problem.sequences[s].begin + r)] = kBranches[s].past + r;
  }
  return problem;
}

/// The rows of a branch and of all that it continues, by position.
std::vector<std::int64_t> path_of(int branch) {
  if (branch < 0) return {};
  std::vector<std::int64_t> path = path_of(kBranches[branch].parent);
  path.resize(static_cast<std::size_t>(kBranches[branch].past));
  std::int64_t begin = 0;
  for (int b = 0; b < branch; ++b) begin += kBranches[b].rows;
  for (int r = 0; r < kBranches[branch].rows; ++r) path.push_back(begin + r);
  return path;
}

TYPED_TEST(Attention, BehindASharedPrefixEqualsTheWholePathBitForBit) {
  using T = TypeParam;
  for (const AttentionShape& shape : kAttentionShapes) {
    const AttentionProblem<T> problem = branched_problem<T>(shape);
    const auto together = problem.forward();
    set_num_threads(3);
    EXPECT_EQ(std::memcmp(together.data(), problem.forward().data(), together.size() * sizeof(T)), 0);
    set_num_threads(1);
    const std::int64_t row = static_cast<std::int64_t>(shape.heads) * shape.dim;
    for (int b = 0; b < static_cast<int>(std::size(kBranches)); ++b) {
      const auto path = path_of(b);
      const auto alone = path_problem(problem, shape, path).forward();
      for (std::size_t p = 0; p < path.size(); ++p)
        ASSERT_EQ(std::memcmp(alone.data() + static_cast<std::int64_t>(p) * row, together.data() + path[p] * row,
                              static_cast<std::size_t>(row) * sizeof(T)),
                  0)
            << "branch " << b << " position " << p;
    }
  }
}

TYPED_TEST(Attention, BehindASharedPrefixHasTheSumOfThePathsGradients) {
  using T = TypeParam;
  using Wide = Computed<T>;
  for (const AttentionShape& shape : kAttentionShapes) {
    const AttentionProblem<T> problem = branched_problem<T>(shape);
    const auto out = problem.forward();
    const std::int64_t row = static_cast<std::int64_t>(shape.heads) * shape.dim, width = problem.layer.width();
    RandomStream stream(8);
    std::vector<T> dout;
    for (std::size_t i = 0; i < out.size(); ++i) dout.push_back(stored<T>(static_cast<Wide>(stream.normal())));
    const auto gradients = [&] {
      std::vector<T> dqkv(problem.qkv.size());
      std::vector<Wide> norms(2 * static_cast<std::size_t>(shape.dim), Wide(0));
      attention_backward<T>(problem.layer, problem.qkv.data(), problem.positions.data(), problem.sequences, out.data(),
                            dout.data(), dqkv.data(), norms.data(), norms.data() + shape.dim);
      std::vector<double> all;
      for (const T x : dqkv) all.push_back(widened(x));
      all.insert(all.end(), norms.begin(), norms.end());
      return all;
    };
    const std::vector<double> got = gradients();
    set_num_threads(3);
    EXPECT_EQ(got, gradients());
    set_num_threads(1);

    std::vector<double> expected(got.size(), 0.0);
    for (int b = 0; b < static_cast<int>(std::size(kBranches)); ++b) {
      const auto path = path_of(b);
      const AttentionProblem<T> alone = path_problem(problem, shape, path);
      const auto alone_out = alone.forward();
      // The share of the loss that belongs to its own rows.
      std::vector<T> alone_dout(alone_out.size(), T{}), dqkv(alone.qkv.size());
      std::vector<Wide> norms(2 * static_cast<std::size_t>(shape.dim), Wide(0));
      for (std::size_t p = static_cast<std::size_t>(kBranches[b].past); p < path.size(); ++p)
        std::copy_n(dout.data() + path[p] * row, row, alone_dout.data() + static_cast<std::int64_t>(p) * row);
      attention_backward<T>(alone.layer, alone.qkv.data(), alone.positions.data(), alone.sequences, alone_out.data(),
                            alone_dout.data(), dqkv.data(), norms.data(), norms.data() + shape.dim);
      for (std::size_t p = 0; p < path.size(); ++p)
        for (std::int64_t i = 0; i < width; ++i)
          expected[static_cast<std::size_t>(path[p] * width + i)] +=
              widened(dqkv[p * static_cast<std::size_t>(width) + static_cast<std::size_t>(i)]);
      for (std::size_t d = 0; d < norms.size(); ++d)
        expected[static_cast<std::size_t>(problem.rows * width) + d] += static_cast<double>(norms[d]);
    }
    double size = 0, error = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      size = std::max(size, std::abs(expected[i]));
      error = std::max(error, std::abs(got[i] - expected[i]));
    }
    EXPECT_LT(error, this->kTolerance * size) << "heads " << shape.heads;
  }
}

}  // namespace
}  // namespace carnot::kernel
