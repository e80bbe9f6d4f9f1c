// testing/attention_problem.h -- random rows for attention, computed at once, alone and in pieces. Header only, because
// this library does not link the kernels.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/attention/attention.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/gemm/bfloat16_gemm.h"
#include "testing/missing.h"

namespace carnot::testing {

struct AttentionShape {
  int heads, kv_heads, dim;
  bool norms;
  int unrotated = 0, window = 0;
  bool scaled_queries = false;
};
inline constexpr AttentionShape kAttentionShapes[] = {
    {4, 2, 32, false},     {6, 2, 8, true}, {3, 3, 20, false}, {14, 2, 64, true}, {4, 2, 32, false, 8, 16, true},
    {6, 2, 8, true, 8, 23}};

/// Random rows stored as S and the tables that a layer points to.
template <class S>
struct AttentionProblem {
  using T = kernel::Computed<S>;

  AttentionProblem(const AttentionShape& shape, const std::vector<int>& lengths) {
    RandomStream stream(17);
    const int rotated = shape.dim - shape.unrotated, half = rotated / 2;
    for (int p = 0; p < 640; ++p) {
      for (int i = 0; i < half; ++i) {
        const double angle = p * std::pow(10000.0, -2.0 * i / rotated);
        cosine.push_back(static_cast<T>(std::cos(angle)));
        sine.push_back(static_cast<T>(std::sin(angle)));
      }
      query_scale.push_back(static_cast<T>(1 + 0.1 * std::log(1 + p / 8)));
    }
    for (int d = 0; d < shape.dim; ++d) {
      query_norm.push_back(static_cast<T>(1 + 0.3 * stream.normal()));
      key_norm.push_back(static_cast<T>(1 + 0.3 * stream.normal()));
    }
    layer = {.heads = shape.heads,
             .kv_heads = shape.kv_heads,
             .dim = shape.dim,
             .scale = static_cast<T>(1 / std::sqrt(double(shape.dim))),
             .query_norm = shape.norms ? query_norm.data() : nullptr,
             .key_norm = shape.norms ? key_norm.data() : nullptr,
             .norm_epsilon = T(1e-6),
             .cosine = cosine.data(),
             .sine = sine.data(),
             .query_scale = shape.scaled_queries ? query_scale.data() : nullptr,
             .unrotated = shape.unrotated,
             .window = shape.window};
    for (int length : lengths) {
      sequences.push_back({.begin = rows, .rows = length});
      for (int p = 0; p < length; ++p) positions.push_back(p);
      rows += length;
    }
    for (std::int64_t i = 0; i < rows * layer.width(); ++i)
      qkv.push_back(kernel::stored<S>(static_cast<T>(stream.normal())));
  }

  /// Of the `number`-th sequence, without the others.
  std::vector<S> forward_alone(std::size_t number,
                               const kernel::BFloat16Kernels& products = kernel::bfloat16_kernels()) const {
    const kernel::AttentionRows<S>& sequence = sequences[number];
    const kernel::AttentionRows<S> alone{.begin = 0, .rows = sequence.rows};
    std::vector<S> out(sequence.rows * layer.heads * layer.dim);
    kernel::attention_forward<S>(layer, qkv.data() + sequence.begin * layer.width(), positions.data() + sequence.begin,
                                 {&alone, 1}, out.data(), products);
    return out;
  }

  /// Whether it has the bits of each sequence alone, and of three threads.
  void expect_bits_of_each_alone(const kernel::BFloat16Kernels& products = kernel::bfloat16_kernels()) const {
    const std::vector<S> together = forward(products);
    set_num_threads(3);
    EXPECT_EQ(together, forward(products));
    set_num_threads(1);
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      const std::vector<S> alone = forward_alone(s, products);
      EXPECT_EQ(std::memcmp(alone.data(), together.data() + sequences[s].begin * layer.heads * layer.dim,
                            alone.size() * sizeof(S)),
                0)
          << sequences[s].rows;
    }
  }

  std::vector<S> forward(const kernel::BFloat16Kernels& products = kernel::bfloat16_kernels()) const {
    std::vector<S> out(rows * layer.heads * layer.dim);
    kernel::attention_forward<S>(layer, qkv.data(), positions.data(), sequences, out.data(), products);
    return out;
  }

  kernel::AttentionLayer<T> layer;
  std::vector<T> cosine, sine, query_scale, query_norm, key_norm;
  std::vector<S> qkv;
  std::vector<std::int64_t> positions;
  std::vector<kernel::AttentionRows<S>> sequences;
  std::int64_t rows = 0;
};

/// The result for a problem of one sequence, computed in pieces, each with the blocks of the previous ones.
template <class S>
std::vector<S> in_pieces(const AttentionProblem<S>& problem, const std::vector<int>& pieces,
                         const kernel::BFloat16Kernels& products = kernel::bfloat16_kernels()) {
  const kernel::AttentionLayer<kernel::Computed<S>>& layer = problem.layer;
  const std::size_t block = static_cast<std::size_t>(layer.kv_heads * layer.dim * kernel::kTile);
  const auto blocks = static_cast<std::size_t>(problem.rows + kernel::kTile - 1) / kernel::kTile;
  // Reused blocks can contain anything.
  std::vector<S> memory(2 * blocks * block, kernel::stored<S>(std::numeric_limits<kernel::Computed<S>>::quiet_NaN()));
  std::vector<S*> keys, values;
  for (std::size_t b = blocks; b-- > 0;) {
    keys.push_back(memory.data() + 2 * b * block);
    values.push_back(memory.data() + (2 * b + 1) * block);
  }
  std::vector<S> out(problem.rows * layer.heads * layer.dim);
  int past = 0;
  for (int rows : pieces) {
    const kernel::AttentionRows<S> piece{
        .begin = 0, .rows = rows, .past = past, .key_blocks = keys, .value_blocks = values};
    kernel::attention_forward<S>(layer, problem.qkv.data() + past * layer.width(), problem.positions.data() + past,
                                 {&piece, 1}, out.data() + past * layer.heads * layer.dim, products);
    past += rows;
  }
  return out;
}

/// These rows of the problem as one sequence of another.
template <class S>
AttentionProblem<S> path_problem(const AttentionProblem<S>& problem, const AttentionShape& shape,
                                 const std::vector<std::int64_t>& path) {
  AttentionProblem<S> alone(shape, {static_cast<int>(path.size())});
  alone.qkv.clear();
  for (const std::int64_t row : path) {
    const auto first = problem.qkv.begin() + row * problem.layer.width();
    alone.qkv.insert(alone.qkv.end(), first, first + problem.layer.width());
  }
  return alone;
}

template <class S>
class Attention : public ::testing::Test {
 protected:
  /// For results of size 1.
  static constexpr double kTolerance = std::is_same_v<S, double> ? 1e-12 : std::is_same_v<S, float> ? 1e-5 : 0.01;
};

using StoredTypes = ::testing::Types<float, double, kernel::BFloat16>;

/// Each kernel set that this machine has.
class BFloat16AttentionOfSet : public ::testing::TestWithParam<kernel::BFloat16KernelSet> {
 protected:
  void SetUp() override {
    if (GetParam().missing != nullptr) CARNOT_SKIP(Processor, GetParam().missing);
  }
  static const kernel::BFloat16Kernels& products() { return *GetParam().kernels; }
};

/// More positions than are packed at once.
inline constexpr int kLong = 301;

}  // namespace carnot::testing
