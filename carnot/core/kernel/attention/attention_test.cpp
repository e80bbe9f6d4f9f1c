#include "carnot/core/kernel/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/attention/attention_task.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/gemm/bfloat16_gemm.h"
#include "reference/attention.h"
#include "testing/missing.h"

namespace carnot::kernel {
namespace {

struct Shape {
  int heads, kv_heads, dim;
  bool norms;
  int unrotated = 0, window = 0;
};
constexpr Shape kShapes[] = {{4, 2, 32, false}, {6, 2, 8, true},          {3, 3, 20, false},
                             {14, 2, 64, true}, {4, 2, 32, false, 8, 16}, {6, 2, 8, true, 8, 23}};

/// Random rows stored as S and the tables that a layer points to.
template <class S>
struct Problem {
  using T = Computed<S>;

  Problem(const Shape& shape, const std::vector<int>& lengths) {
    RandomStream stream(17);
    const int rotated = shape.dim - shape.unrotated, half = rotated / 2;
    for (int p = 0; p < 640; ++p) {
      for (int i = 0; i < half; ++i) {
        const double angle = p * std::pow(10000.0, -2.0 * i / rotated);
        cosine.push_back(static_cast<T>(std::cos(angle)));
        sine.push_back(static_cast<T>(std::sin(angle)));
      }
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
             .unrotated = shape.unrotated,
             .window = shape.window};
    for (int length : lengths) {
      sequences.push_back({.begin = rows, .rows = length});
      for (int p = 0; p < length; ++p) positions.push_back(p);
      rows += length;
    }
    for (std::int64_t i = 0; i < rows * layer.width(); ++i) qkv.push_back(stored<S>(static_cast<T>(stream.normal())));
  }

  std::vector<S> forward(const BFloat16Kernels& products = bfloat16_kernels()) const {
    std::vector<S> out(rows * layer.heads * layer.dim);
    attention_forward<S>(layer, qkv.data(), positions.data(), sequences, out.data(), products);
    return out;
  }

  AttentionLayer<T> layer;
  std::vector<T> cosine, sine, query_norm, key_norm;
  std::vector<S> qkv;
  std::vector<std::int64_t> positions;
  std::vector<AttentionRows<S>> sequences;
  std::int64_t rows = 0;
};

/// The result for a problem of one sequence, computed in pieces, each with the blocks of the previous ones.
template <class S>
std::vector<S> in_pieces(const Problem<S>& problem, const std::vector<int>& pieces,
                         const BFloat16Kernels& products = bfloat16_kernels()) {
  const AttentionLayer<Computed<S>>& layer = problem.layer;
  const std::size_t block = static_cast<std::size_t>(layer.kv_heads * layer.dim * kTile);
  const auto blocks = static_cast<std::size_t>(problem.rows + kTile - 1) / kTile;
  // Reused blocks can contain anything.
  std::vector<S> memory(2 * blocks * block, stored<S>(std::numeric_limits<Computed<S>>::quiet_NaN()));
  std::vector<S*> keys, values;
  for (std::size_t b = blocks; b-- > 0;) {
    keys.push_back(memory.data() + 2 * b * block);
    values.push_back(memory.data() + (2 * b + 1) * block);
  }
  std::vector<S> out(problem.rows * layer.heads * layer.dim);
  int past = 0;
  for (int rows : pieces) {
    const AttentionRows<S> piece{.begin = 0, .rows = rows, .past = past, .key_blocks = keys, .value_blocks = values};
    attention_forward<S>(layer, problem.qkv.data() + past * layer.width(), problem.positions.data() + past, {&piece, 1},
                         out.data() + past * layer.heads * layer.dim, products);
    past += rows;
  }
  return out;
}

template <class S>
class Attention : public ::testing::Test {
 protected:
  /// For results of size 1.
  static constexpr double kTolerance = std::is_same_v<S, double> ? 1e-12 : std::is_same_v<S, float> ? 1e-5 : 0.01;
};
using Stored = ::testing::Types<float, double, BFloat16>;
TYPED_TEST_SUITE(Attention, Stored);

TYPED_TEST(Attention, EqualsTheDefinition) {
  using T = TypeParam;
  for (const Shape& shape : kShapes) {
    const Problem<T> problem(shape, {1, 16, 37, 70});
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
      const auto expected = reference::attention(slow);
      const std::size_t offset = static_cast<std::size_t>(sequence.begin * shape.heads * shape.dim);
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(widened(out[offset + i]), expected[i], this->kTolerance) << "heads " << shape.heads << " at " << i;
    }
  }
}

TYPED_TEST(Attention, GradientMatchesFiniteDifferences) {
  if constexpr (sizeof(TypeParam) == 8) {
    for (const Shape& shape : {Shape{4, 2, 6, false}, Shape{4, 2, 8, true}, Shape{4, 2, 8, true, 4, 5}}) {
      Problem<double> problem(shape, {19, 3});
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

/// The same numbers in float64.
Problem<double> in_double(const Problem<BFloat16>& problem, const Shape& shape, const std::vector<int>& lengths) {
  Problem<double> wide(shape, lengths);
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
  for (const Shape& shape : kShapes) {
    const std::vector<int> lengths{33, 5, 50};
    const Problem<BFloat16> problem(shape, lengths);
    const Problem<double> wide = in_double(problem, shape, lengths);
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

TYPED_TEST(Attention, InPiecesThroughBlocksEqualsAtOnceBitForBit) {
  using T = TypeParam;
  for (const Shape& shape : kShapes) {
    const Problem<T> problem(shape, {70});
    const auto at_once = problem.forward(), pieces = in_pieces(problem, {5, 1, 1, 30, 1, 20, 12});
    EXPECT_EQ(std::memcmp(at_once.data(), pieces.data(), at_once.size() * sizeof(T)), 0) << shape.heads;
  }
}

TYPED_TEST(Attention, ThreadsNeverMeetInABlock) {
  using T = TypeParam;
  const Shape shape = kShapes[0];
  Problem<T> problem(shape, {7, 90});
  problem.sequences = {{.begin = 0, .rows = 97}};
  for (std::size_t p = 0; p < 97; ++p) problem.positions[p] = static_cast<std::int64_t>(p);
  const auto at_once = problem.forward();
  const std::size_t block = static_cast<std::size_t>(shape.kv_heads * shape.dim * kTile);
  set_num_threads(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<T> memory(2 * 7 * block, stored<T>(1));
    std::vector<T*> keys, values;
    for (std::size_t b = 0; b < 7; ++b) {
      keys.push_back(memory.data() + b * 2 * block);
      values.push_back(memory.data() + (b * 2 + 1) * block);
    }
    std::vector<T> in_pieces(at_once.size());
    int past = 0;
    for (int rows : {7, 90}) {  // the second piece begins inside a block
      const AttentionRows<T> piece{.begin = 0, .rows = rows, .past = past, .key_blocks = keys, .value_blocks = values};
      attention_forward<T>(problem.layer, problem.qkv.data() + past * problem.layer.width(),
                           problem.positions.data() + past, {&piece, 1},
                           in_pieces.data() + past * shape.heads * shape.dim);
      past += rows;
    }
    ASSERT_EQ(in_pieces, at_once) << "trial " << trial;
  }
  set_num_threads(1);
}

TYPED_TEST(Attention, PackedEqualsOneByOneAndOneThreadEqualsThreeBitForBit) {
  using T = TypeParam;
  const Problem<T> problem(kShapes[1], {9, 70, 33});
  const auto together = problem.forward();
  set_num_threads(3);
  EXPECT_EQ(together, problem.forward());
  set_num_threads(1);
  for (const auto& sequence : problem.sequences) {
    const AttentionRows<T> alone{.begin = 0, .rows = sequence.rows};
    std::vector<T> out(sequence.rows * problem.layer.heads * problem.layer.dim);
    attention_forward<T>(problem.layer, problem.qkv.data() + sequence.begin * problem.layer.width(),
                         problem.positions.data() + sequence.begin, {&alone, 1}, out.data());
    EXPECT_EQ(std::memcmp(out.data(), together.data() + sequence.begin * problem.layer.heads * problem.layer.dim,
                          out.size() * sizeof(T)),
              0);
  }
}

/// Each kernel set that this machine has.
class BFloat16AttentionOfSet : public ::testing::TestWithParam<BFloat16KernelSet> {
 protected:
  void SetUp() override {
    if (GetParam().missing != nullptr) CARNOT_SKIP(Processor, GetParam().missing);
  }
  static const BFloat16Kernels& products() { return *GetParam().kernels; }
};
INSTANTIATE_TEST_SUITE_P(Sets, BFloat16AttentionOfSet,
                         ::testing::ValuesIn(bfloat16_kernel_sets().begin(), bfloat16_kernel_sets().end()),
                         [](const auto& set) { return std::string(set.param.kernels->name); });

// More positions than are packed at once, and sizes that are multiples of nothing.
constexpr Shape kLongShapes[] = {{6, 2, 8, true},          {3, 3, 20, false},       {14, 2, 64, true},
                                 {5, 1, 36, false},        {6, 2, 8, true, 0, 45},  {14, 2, 64, true, 0, 130},
                                 {5, 1, 36, false, 0, 70}, {3, 3, 32, false, 32, 1}};
constexpr int kLong = 301;

TEST_P(BFloat16AttentionOfSet, PrefillAtOnceInPiecesAndTokenByTokenHaveTheSameBits) {
  for (const Shape& shape : kLongShapes) {
    const Problem<BFloat16> problem(shape, {kLong});
    const auto at_once = problem.forward(products());
    EXPECT_EQ(at_once, in_pieces(problem, {5, 1, 1, 30, 1, 200, 46, 17}, products())) << shape.heads;
    EXPECT_EQ(at_once, in_pieces(problem, std::vector<int>(kLong, 1), products())) << shape.heads;
  }
}

TEST_P(BFloat16AttentionOfSet, ASequenceHasTheSameBitsAloneAndAmongOthersOnAnyNumberOfThreads) {
  for (const Shape& shape : kLongShapes) {
    const Problem<BFloat16> problem(shape, {9, kLong, 33, 128});
    const auto together = problem.forward(products());
    set_num_threads(3);
    EXPECT_EQ(together, problem.forward(products()));
    set_num_threads(1);
    for (const auto& sequence : problem.sequences) {
      const AttentionRows<BFloat16> alone{.begin = 0, .rows = sequence.rows};
      std::vector<BFloat16> out(sequence.rows * shape.heads * shape.dim);
      attention_forward<BFloat16>(problem.layer, problem.qkv.data() + sequence.begin * problem.layer.width(),
                                  problem.positions.data() + sequence.begin, {&alone, 1}, out.data(), products());
      const auto first = together.begin() + sequence.begin * shape.heads * shape.dim;
      EXPECT_TRUE(std::equal(out.begin(), out.end(), first)) << sequence.rows;
    }
  }
}

/// A query's result with the set's products, over exactly the positions that it sees.
std::vector<BFloat16> by_two_products(const BFloat16Kernels& kernels, const Problem<BFloat16>& problem, int head,
                                      int position) {
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
double by_definition(const Problem<BFloat16>& problem, int head, int position, int d) {
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
  for (const Shape& shape : {Shape{6, 2, 8, false}, Shape{3, 3, 20, false}, Shape{14, 2, 64, false}}) {
    Problem<BFloat16> problem(shape, {kLong});
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

/// A run of rows that continues the first positions of an earlier one.
struct Branch {
  int parent, past, rows;
};
/// Continuing all of another one; a part of it that ends within a block or at its end; a position that the previous one
/// continues, too; alone; and one row.
constexpr Branch kBranches[] = {{-1, 0, 37}, {0, 37, 20}, {0, 21, 30}, {2, 51, 5}, {2, 32, 9},
                                {-1, 0, 12}, {3, 10, 4},  {0, 16, 1},  {5, 12, 40}};

template <class S>
Problem<S> branched_problem(const Shape& shape) {
  std::vector<int> lengths;
  for (const Branch& branch : kBranches) lengths.push_back(branch.rows);
  Problem<S> problem(shape, lengths);
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

/// The branch's whole path as a separate problem.
template <class S>
Problem<S> path_problem(const Problem<S>& problem, const Shape& shape, const std::vector<std::int64_t>& path) {
  Problem<S> alone(shape, {static_cast<int>(path.size())});
  alone.qkv.clear();
  for (const std::int64_t row : path) {
    const auto first = problem.qkv.begin() + row * problem.layer.width();
    alone.qkv.insert(alone.qkv.end(), first, first + problem.layer.width());
  }
  return alone;
}

TYPED_TEST(Attention, BehindASharedPrefixEqualsTheWholePathBitForBit) {
  using T = TypeParam;
  for (const Shape& shape : kShapes) {
    const Problem<T> problem = branched_problem<T>(shape);
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

// One query per key-value head, several, and head sizes that are multiples of nothing.
constexpr Shape kGroupShapes[] = {
    {14, 2, 64, false}, {3, 3, 32, true}, {6, 2, 20, true}, {4, 1, 48, false}, {6, 2, 20, true, 0, 50}};

/// Sequences that share blocks of a cache, as a result of forks and writes.
template <class S>
class SharedCache {
 public:
  /// A sequence's rows of the problem by position, the blocks that hold them, and the results of each.
  struct Sequence {
    std::vector<std::int64_t> rows{};
    std::vector<int> blocks{};
    std::map<int, std::vector<S>> results{};  // by position
    bool live = true;
  };

  SharedCache(const Problem<S>& problem, const BFloat16Kernels& products)
      : problem_(problem),
        products_(products),
        block_(static_cast<std::size_t>(problem.layer.kv_heads * problem.layer.dim * kTile)) {}

  int start() {
    sequences.emplace_back();
    return static_cast<int>(sequences.size()) - 1;
  }
  int fork(int parent, int length) {
    Sequence child;
    const auto tiles = static_cast<std::ptrdiff_t>(tiles_of(length));
    child.rows.assign(sequences[parent].rows.begin(), sequences[parent].rows.begin() + length);
    child.blocks.assign(sequences[parent].blocks.begin(), sequences[parent].blocks.begin() + tiles);
    for (const int block : child.blocks) ++holders_[block];
    sequences.push_back(child);
    return static_cast<int>(sequences.size()) - 1;
  }
  void leave(int sequence) {
    sequences[sequence].live = false;
    for (const int block : sequences[sequence].blocks) --holders_[block];
  }

  /// One call over `counts` new rows of the sequences.
  void step(const std::vector<std::pair<int, int>>& counts) {
    const std::size_t width = static_cast<std::size_t>(problem_.layer.width());
    std::vector<S> qkv;
    std::vector<std::int64_t> positions;
    std::vector<AttentionRows<S>> all;
    std::vector<std::vector<S*>> keys, values;
    for (const auto& [number, count] : counts) {
      Sequence& sequence = sequences[number];
      const int past = static_cast<int>(sequence.rows.size());
      make_room(sequence, past, count);
      all.push_back({.begin = static_cast<std::int64_t>(positions.size()), .rows = count, .past = past});
      for (int r = 0; r < count; ++r) {
        CARNOT_CHECK_LT(next_row_, problem_.rows);
        sequence.rows.push_back(next_row_++);
        positions.push_back(past + r);
        const auto first = problem_.qkv.begin() + sequence.rows.back() * problem_.layer.width();
        qkv.insert(qkv.end(), first, first + static_cast<std::ptrdiff_t>(width));
      }
      auto& of_keys = keys.emplace_back();
      auto& of_values = values.emplace_back();
      for (const int block : sequence.blocks) {
        of_keys.push_back(memory_[block].data());
        of_values.push_back(memory_[block].data() + block_);
      }
    }
    for (std::size_t s = 0; s < all.size(); ++s) {
      all[s].key_blocks = keys[s];
      all[s].value_blocks = values[s];
    }
    const std::size_t row = static_cast<std::size_t>(problem_.layer.heads * problem_.layer.dim);
    std::vector<S> out(positions.size() * row);
    attention_forward<S>(problem_.layer, qkv.data(), positions.data(), all, out.data(), products_);
    for (std::size_t s = 0; s < all.size(); ++s)
      for (int r = 0; r < all[s].rows; ++r) {
        const auto first = out.begin() + static_cast<std::ptrdiff_t>((all[s].begin + r) * static_cast<int>(row));
        sequences[counts[s].first].results[all[s].past + r].assign(first, first + static_cast<std::ptrdiff_t>(row));
      }
  }

  std::vector<Sequence> sequences{};

 private:
  void make_room(Sequence& sequence, int past, int count) {
    if (past % kTile != 0 && holders_[sequence.blocks.back()] > 1) {
      const int copy = take();
      memory_[copy] = memory_[sequence.blocks.back()];
      --holders_[sequence.blocks.back()];
      sequence.blocks.back() = copy;
    }
    while (static_cast<int>(sequence.blocks.size()) < tiles_of(past + count)) sequence.blocks.push_back(take());
  }
  int take() {
    for (std::size_t b = 0; b < holders_.size(); ++b)
      if (holders_[b] == 0) return holders_[b] = 1, static_cast<int>(b);  // contains what another sequence left
    memory_.emplace_back(2 * block_, stored<S>(std::numeric_limits<Computed<S>>::quiet_NaN()));
    holders_.push_back(1);
    return static_cast<int>(holders_.size()) - 1;
  }

  const Problem<S>& problem_;
  const BFloat16Kernels& products_;
  std::size_t block_;
  std::deque<std::vector<S>> memory_{};
  std::vector<int> holders_{};
  std::int64_t next_row_ = 0;
};

/// A prompt, its branches and theirs: they grow together by one token or a few, fork, wait and end.
template <class S>
void grow_together(SharedCache<S>& cache, RandomStream& random) {
  const auto below = [&](int n) { return static_cast<int>(random.below(static_cast<std::uint64_t>(n))); };
  for (int prompt = 0; prompt < 2; ++prompt) {
    const int root = cache.start();
    cache.step({{root, 40 + below(150)}});
    for (int i = 0; i < 5; ++i) cache.fork(root, static_cast<int>(cache.sequences[root].rows.size()));
  }
  for (int step = 0; step < 16; ++step) {
    std::vector<std::pair<int, int>> counts;
    for (int s = 0; s < static_cast<int>(cache.sequences.size()); ++s)
      if (cache.sequences[s].live && below(8) > 0) counts.emplace_back(s, below(10) == 0 ? 1 + below(20) : 1);
    if (!counts.empty()) cache.step(counts);
    const int some = below(static_cast<int>(cache.sequences.size()));
    if (!cache.sequences[some].live) continue;
    if (below(3) == 0) cache.fork(some, 1 + below(static_cast<int>(cache.sequences[some].rows.size())));
    if (below(6) == 0) cache.leave(some);
  }
}

/// Whether all results after shared blocks have the bits of each sequence computed alone, at once.
template <class S>
void expect_bits_of_each_alone(const Shape& shape, const BFloat16Kernels& products, std::uint64_t seed) {
  RandomStream random(seed);
  const Problem<S> problem(shape, {1600});
  SharedCache<S> cache(problem, products);
  grow_together(cache, random);
  const std::size_t row = static_cast<std::size_t>(shape.heads * shape.dim);
  for (std::size_t s = 0; s < cache.sequences.size(); ++s) {
    const auto& sequence = cache.sequences[s];
    if (sequence.results.empty()) continue;
    const auto alone = path_problem(problem, shape, sequence.rows).forward(products);
    for (const auto& [position, got] : sequence.results)
      ASSERT_EQ(std::memcmp(got.data(), alone.data() + static_cast<std::size_t>(position) * row, row * sizeof(S)), 0)
          << "heads " << shape.heads << ", sequence " << s << " at " << position;
  }
}

TYPED_TEST(Attention, OfSequencesThatShareBlocksHasTheBitsOfEachAlone) {
  for (const Shape& shape : kGroupShapes) {
    expect_bits_of_each_alone<TypeParam>(shape, bfloat16_kernels(), 31);
    set_num_threads(3);
    expect_bits_of_each_alone<TypeParam>(shape, bfloat16_kernels(), 32);
    set_num_threads(1);
  }
}

TEST_P(BFloat16AttentionOfSet, OfSequencesThatShareBlocksHasTheBitsOfEachAlone) {
  for (const Shape& shape : kGroupShapes) expect_bits_of_each_alone<BFloat16>(shape, products(), 33);
}

TEST_P(BFloat16AttentionOfSet, ReadsBlocksInPlaceWithTheBitsOfPackedOnes) {
  BFloat16Kernels packing = products();
  packing.scores = packing.weighted_values = nullptr;
  for (const Shape& shape : {Shape{14, 2, 64, true}, Shape{5, 1, 16, false}, Shape{3, 3, 48, false}}) {
    const Problem<BFloat16> problem(shape, {9, kLong, 33});
    EXPECT_EQ(problem.forward(products()), problem.forward(packing)) << shape.heads;
    expect_bits_of_each_alone<BFloat16>(shape, packing, 34);
  }
}

TYPED_TEST(Attention, BehindASharedPrefixHasTheSumOfThePathsGradients) {
  using T = TypeParam;
  using Wide = Computed<T>;
  for (const Shape& shape : kShapes) {
    const Problem<T> problem = branched_problem<T>(shape);
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
      const Problem<T> alone = path_problem(problem, shape, path);
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
