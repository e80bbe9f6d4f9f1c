#include "carnot/core/kernel/attention/attention.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "reference/attention.h"
#include "testing/attention_problem.h"

namespace carnot::kernel {
namespace {

using testing::Attention;
using testing::AttentionProblem;
using testing::AttentionShape;
using testing::in_pieces;
using testing::kAttentionShapes;

TYPED_TEST_SUITE(Attention, testing::StoredTypes);

TYPED_TEST(Attention, EqualsTheDefinition) {
  using T = TypeParam;
  for (const AttentionShape& shape : kAttentionShapes) {
    const AttentionProblem<T> problem(shape, {1, 16, 37, 70});
    const auto out = problem.forward();
    for (const auto& sequence : problem.sequences) {
      const auto first = problem.qkv.begin() + sequence.begin * problem.layer.width();
      reference::AttentionInput slow{.heads = shape.heads,
                                     .kv_heads = shape.kv_heads,
                                     .dim = shape.dim,
                                     .length = sequence.rows,
                                     .unrotated = shape.unrotated,
                                     .window = shape.window};
      for (auto x = first; x != first + sequence.rows * problem.layer.width(); ++x) slow.qkv.push_back(widened(*x));
      if (shape.norms) {
        slow.query_norm.assign(problem.query_norm.begin(), problem.query_norm.end());
        slow.key_norm.assign(problem.key_norm.begin(), problem.key_norm.end());
      }
      if (shape.scaled_queries) slow.query_scale.assign(problem.query_scale.begin(), problem.query_scale.end());
      const auto expected = reference::attention(slow);
      const std::size_t offset = static_cast<std::size_t>(sequence.begin * shape.heads * shape.dim);
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(widened(out[offset + i]), expected[i], this->kTolerance) << "heads " << shape.heads << " at " << i;
    }
  }
}

TYPED_TEST(Attention, GradientMatchesFiniteDifferences) {
  if constexpr (sizeof(TypeParam) == 8) {
    for (const AttentionShape& shape :
         {AttentionShape{4, 2, 6, false}, AttentionShape{4, 2, 8, true}, AttentionShape{4, 2, 8, true, 4, 5, true}}) {
      AttentionProblem<double> problem(shape, {19, 3});
      RandomStream stream(5);
      const auto out = problem.forward();
      std::vector<double> dout(out.size());
      for (double& g : dout) g = stream.normal();
      std::vector<double> dqkv(problem.qkv.size()), dquery(8, 0.0), dkey(8, 0.0);
      attention_backward<double>(problem.layer, problem.qkv.data(), problem.positions.data(), problem.sequences,
                                 out.data(), dout.data(), dqkv.data(), dquery.data(), dkey.data());
      const auto loss = [&] {
        const auto now = problem.forward();
        double sum = 0;
        for (std::size_t i = 0; i < now.size(); ++i) sum += now[i] * dout[i];
        return sum;
      };
      const auto slope = [&](double& at) {
        const double keep = at, h = 1e-6;
        at = keep + h;
        const double up = loss();
        at = keep - h;
        const double down = loss();
        at = keep;
        return (up - down) / (2 * h);
      };
      for (std::size_t i = 0; i < problem.qkv.size(); i += 7) ASSERT_NEAR(dqkv[i], slope(problem.qkv[i]), 1e-6) << i;
      if (!shape.norms) continue;
      for (std::size_t d = 0; d < 8; ++d) {
        ASSERT_NEAR(dquery[d], slope(problem.query_norm[d]), 1e-6);
        ASSERT_NEAR(dkey[d], slope(problem.key_norm[d]), 1e-6);
      }
    }
  }
}

TYPED_TEST(Attention, InPiecesThroughBlocksEqualsAtOnceBitForBit) {
  using T = TypeParam;
  for (const AttentionShape& shape : kAttentionShapes) {
    const AttentionProblem<T> problem(shape, {70});
    const auto at_once = problem.forward(), pieces = in_pieces(problem, {5, 1, 1, 30, 1, 20, 12});
    EXPECT_EQ(std::memcmp(at_once.data(), pieces.data(), at_once.size() * sizeof(T)), 0) << shape.heads;
  }
}

TYPED_TEST(Attention, ThreadsNeverMeetInABlock) {
  const AttentionProblem<TypeParam> problem(kAttentionShapes[0], {97});
  const auto at_once = problem.forward();
  set_num_threads(3);
  for (int trial = 0; trial < 300; ++trial)
    ASSERT_EQ(in_pieces(problem, {7, 90}), at_once) << "trial " << trial;  // the second begins inside a block
  set_num_threads(1);
}

TYPED_TEST(Attention, PackedEqualsOneByOneAndOneThreadEqualsThreeBitForBit) {
  AttentionProblem<TypeParam>(kAttentionShapes[1], {9, 70, 33}).expect_bits_of_each_alone();
}

}  // namespace
}  // namespace carnot::kernel
