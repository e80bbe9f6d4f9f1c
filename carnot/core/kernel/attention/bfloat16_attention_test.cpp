// Attention in bfloat16: against the definition, and the same bits in every kernel set however it is computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "carnot/core/kernel/attention/attention.h"
#include "carnot/core/kernel/gemm/bfloat16_gemm.h"
#include "testing/attention_problem.h"

namespace carnot::kernel {
namespace {

using testing::AttentionProblem;
using testing::AttentionShape;
using testing::BFloat16AttentionOfSet;
using testing::in_pieces;
using testing::kAttentionShapes;
using testing::kLong;

/// The same numbers in float64.
AttentionProblem<double> in_double(const AttentionProblem<BFloat16>& problem, const AttentionShape& shape,
                                   const std::vector<int>& lengths) {
  AttentionProblem<double> wide(shape, lengths);
  const auto copy = [](const auto& from, std::vector<double>& to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = widened(from[i]);
  };
  copy(problem.qkv, wide.qkv);
  copy(problem.cosine, wide.cosine);
  copy(problem.sine, wide.sine);
  copy(problem.query_norm, wide.query_norm);
  copy(problem.key_norm, wide.key_norm);
  return wide;
}

TEST(BFloat16Attention, HasTheGradientOfTheFloat64Path) {
  for (const AttentionShape& shape : kAttentionShapes) {
    const std::vector<int> lengths{33, 5, 50};
    const AttentionProblem<BFloat16> problem(shape, lengths);
    const AttentionProblem<double> wide = in_double(problem, shape, lengths);
    const std::vector<BFloat16> out = problem.forward();
    const std::vector<double> exact_out = wide.forward();
    RandomStream stream(6);
    std::vector<BFloat16> dout, dqkv(problem.qkv.size());
    std::vector<double> exact_dout, exact_dqkv(dqkv.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      dout.push_back(stored<BFloat16>(static_cast<float>(stream.normal())));
      exact_dout.push_back(static_cast<double>(widened(dout.back())));
    }
    std::vector<float> dquery(shape.dim, 0.0F), dkey(shape.dim, 0.0F);
    std::vector<double> exact_dquery(shape.dim, 0.0), exact_dkey(shape.dim, 0.0);
    attention_backward<BFloat16>(problem.layer, problem.qkv.data(), problem.positions.data(), problem.sequences,
                                 out.data(), dout.data(), dqkv.data(), dquery.data(), dkey.data());
    attention_backward<double>(wide.layer, wide.qkv.data(), wide.positions.data(), wide.sequences, exact_out.data(),
                               exact_dout.data(), exact_dqkv.data(), exact_dquery.data(), exact_dkey.data());
    const auto error = [](const auto& got, const std::vector<double>& exact) {
      double sum = 0, size = 0;
      for (std::size_t i = 0; i < exact.size(); ++i) {
        const double difference = static_cast<double>(widened(got[i])) - exact[i];
        sum += difference * difference;
        size += exact[i] * exact[i];
      }
      return std::sqrt(sum / size);
    };
    // Rounding to bfloat16 has an error of at most 2^-8, and less than half of that on average.
    EXPECT_LT(error(dqkv, exact_dqkv), 0.006) << shape.heads;
    if (!shape.norms) continue;
    EXPECT_LT(error(dquery, exact_dquery), 0.006) << shape.heads;
    EXPECT_LT(error(dkey, exact_dkey), 0.006) << shape.heads;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, BFloat16AttentionOfSet,
                         ::testing::ValuesIn(bfloat16_kernel_sets().begin(), bfloat16_kernel_sets().end()),
                         [](const auto& set) { return std::string(set.param.kernels->name); });

// Sizes that are multiples of nothing.
constexpr AttentionShape kLongShapes[] = {{6, 2, 8, true},          {3, 3, 20, false},       {14, 2, 64, true},
                                          {5, 1, 36, false},        {6, 2, 8, true, 0, 45},  {14, 2, 64, true, 0, 130},
                                          {5, 1, 36, false, 0, 70}, {3, 3, 32, false, 32, 1}};

TEST_P(BFloat16AttentionOfSet, PrefillAtOnceInPiecesAndTokenByTokenHaveTheSameBits) {
  for (const AttentionShape& shape : kLongShapes) {
    const AttentionProblem<BFloat16> problem(shape, {kLong});
    const auto at_once = problem.forward(products());
    EXPECT_EQ(at_once, in_pieces(problem, {5, 1, 1, 30, 1, 200, 46, 17}, products())) << shape.heads;
    EXPECT_EQ(at_once, in_pieces(problem, std::vector<int>(kLong, 1), products())) << shape.heads;
  }
}

TEST_P(BFloat16AttentionOfSet, ASequenceHasTheSameBitsAloneAndAmongOthersOnAnyNumberOfThreads) {
  for (const AttentionShape& shape : kLongShapes)
    AttentionProblem<BFloat16>(shape, {9, kLong, 33, 128}).expect_bits_of_each_alone(products());
}

/// A query's result with the set's products, over exactly the positions that it sees.
std::vector<BFloat16> by_two_products(const BFloat16Kernels& kernels, const AttentionProblem<BFloat16>& problem,
                                      int head, int position) {
  const auto& layer = problem.layer;
  const int kv_head = head / (layer.heads / layer.kv_heads), visible = position + 1;
  const auto columns = [&](int first) {
    return BFloat16Rows{problem.qkv.data() + first * layer.dim, visible, layer.width()};
  };
  const BFloat16Rows query{problem.qkv.data() + position * layer.width() + head * layer.dim, 1, layer.width()};
  const BFloat16Rows keys = columns(layer.heads + kv_head), values = columns(layer.heads + layer.kv_heads + kv_head);
  PackedBFloat16 packed_keys, packed_values;
  packed_keys.pack_transposed({&keys, 1}, layer.dim);
  packed_values.pack({&values, 1}, layer.dim);
  const int padded = (visible + 31) / 32 * 32;
  std::vector<float> scores(padded), result(layer.dim);
  std::vector<BFloat16> weights(padded), out(layer.dim);
  gemm(kernels, query, packed_keys, {.sums = scores.data(), .row_stride = padded});
  const float sum = kernels.exponentials(visible, padded, layer.scale, scores.data(), weights.data());
  gemm(kernels, {weights.data(), 1, padded}, packed_values, {.sums = result.data(), .row_stride = layer.dim});
  kernels.scaled(layer.dim, result.data(), 1 / sum, out.data());
  return out;
}

/// The definition in float64 on rounded queries and keys, with rounded weights.
double by_definition(const AttentionProblem<BFloat16>& problem, int head, int position, int d) {
  const auto& layer = problem.layer;
  const int kv_head = head / (layer.heads / layer.kv_heads);
  const auto at = [&](int row, int column) {
    return static_cast<double>(widened(problem.qkv[row * layer.width() + column]));
  };
  std::vector<double> scores;
  for (int j = 0; j <= position; ++j) {
    double sum = 0;
    for (int i = 0; i < layer.dim; ++i)
      sum += at(position, head * layer.dim + i) * at(j, (layer.heads + kv_head) * layer.dim + i);
    scores.push_back(static_cast<double>(layer.scale) * sum);
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double weighted = 0, total = 0;
  for (int j = 0; j <= position; ++j) {
    const double weight = widened(rounded(static_cast<float>(std::exp(scores[j] - largest))));
    weighted += weight * at(j, (layer.heads + layer.kv_heads + kv_head) * layer.dim + d);
    total += weight;
  }
  return weighted / total;
}

TEST_P(BFloat16AttentionOfSet, IsTwoProductsOverThePositionsThatAQuerySees) {
  for (const AttentionShape& shape :
       {AttentionShape{6, 2, 8, false}, AttentionShape{3, 3, 20, false}, AttentionShape{14, 2, 64, false}}) {
    AttentionProblem<BFloat16> problem(shape, {kLong});
    // No rotation: queries and keys are the rows themselves.
    std::fill(problem.cosine.begin(), problem.cosine.end(), 1.0F);
    std::fill(problem.sine.begin(), problem.sine.end(), 0.0F);
    const auto out = problem.forward(products());
    for (int position : {0, 1, 15, 16, 31, 40, 257, kLong - 1}) {
      for (int head = 0; head < shape.heads; ++head) {
        const auto first = out.begin() + (position * shape.heads + head) * shape.dim;
        const std::vector<BFloat16> got(first, first + shape.dim);
        ASSERT_EQ(got, by_two_products(products(), problem, head, position)) << head << " at " << position;
        for (int d = 0; d < shape.dim; d += 3) {
          const double exact = by_definition(problem, head, position, d);
          // Half of the last of eight bits, plus a weight that float32 rounds to the other side.
          ASSERT_NEAR(widened(got[d]), exact, 0x1p-8 * std::abs(exact) + 1e-3) << head << " at " << position;
        }
      }
    }
  }
}

}  // namespace
}  // namespace carnot::kernel
