// Attention of sequences that share blocks of a cache, as a result of forks and writes.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/kernel/attention/attention.h"
#include "carnot/core/kernel/attention/attention_task.h"
#include "testing/attention_problem.h"

namespace carnot::kernel {
namespace {

using testing::Attention;
using testing::AttentionProblem;
using testing::AttentionShape;
using testing::BFloat16AttentionOfSet;
using testing::kLong;
using testing::path_problem;

TYPED_TEST_SUITE(Attention, testing::StoredTypes);

// One query per key-value head, several, and head sizes that are multiples of nothing.
constexpr AttentionShape kGroupShapes[] = {
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

  SharedCache(const AttentionProblem<S>& problem, const BFloat16Kernels& products)
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

  const AttentionProblem<S>& problem_;
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
void expect_bits_of_each_alone(const AttentionShape& shape, const BFloat16Kernels& products, std::uint64_t seed) {
  RandomStream random(seed);
  const AttentionProblem<S> problem(shape, {1600});
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
  for (const AttentionShape& shape : kGroupShapes) {
    expect_bits_of_each_alone<TypeParam>(shape, bfloat16_kernels(), 31);
    set_num_threads(3);
    expect_bits_of_each_alone<TypeParam>(shape, bfloat16_kernels(), 32);
    set_num_threads(1);
  }
}

TEST_P(BFloat16AttentionOfSet, OfSequencesThatShareBlocksHasTheBitsOfEachAlone) {
  for (const AttentionShape& shape : kGroupShapes) expect_bits_of_each_alone<BFloat16>(shape, products(), 33);
}

TEST_P(BFloat16AttentionOfSet, ReadsBlocksInPlaceWithTheBitsOfPackedOnes) {
  BFloat16Kernels packing = products();
  packing.scores = packing.weighted_values = nullptr;
  for (const AttentionShape& shape :
       {AttentionShape{14, 2, 64, true}, AttentionShape{5, 1, 16, false}, AttentionShape{3, 3, 48, false}}) {
    const AttentionProblem<BFloat16> problem(shape, {9, kLong, 33});
    EXPECT_EQ(problem.forward(products()), problem.forward(packing)) << shape.heads;
    expect_bits_of_each_alone<BFloat16>(shape, packing, 34);
  }
}

}  // namespace
}  // namespace carnot::kernel
