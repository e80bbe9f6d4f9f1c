// testing/hash_runner.h -- a model runner whose logits are a hash of the context, read back through the block tables,
// or from the sequences' states.
//
// The cache holds tokens instead of keys and values, so that any bookkeeping mistake (a shared block written, a copy
// forgotten, a position skipped) changes the logits that follow. A state is the hash of the tokens that it has been
// advanced over. Header only, because this library does not link LibTorch.
#pragma once

#include <ATen/Functions.h>

#include <set>
#include <span>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"
#include "carnot/core/cache/block_manager.h"
#include "carnot/core/data/tokens.h"
#include "carnot/core/engine/model_runner.h"

namespace carnot::testing {

/// Hash of a context with one more token.
inline std::uint64_t extended_hash(std::uint64_t hash, TokenId token) {
  return random_bits({.seed = hash, .step = static_cast<std::uint64_t>(token)});
}

/// Of a context's hash, 48 bits that two floats hold exactly.
inline std::uint64_t context_hash(std::span<const TokenId> tokens) {
  std::uint64_t hash = 0;
  for (TokenId token : tokens) hash = extended_hash(hash, token);
  return hash >> 16;
}

/// Logit of `token` after a context of this hash, a float in [-3, 3).
inline float hash_logit(std::uint64_t hash, int token) {
  return static_cast<float>(6 * uniform({.seed = hash, .step = static_cast<std::uint64_t>(token)}) - 3);
}

class HashRunner : public ModelRunner {
 public:
  /// With states, logits come from them, and the blocks must hold the same context; with window blocks, these must hold
  /// the end of it.
  HashRunner(int vocab_size, const CacheSize& size)
      : vocab_size_(vocab_size),
        size_(size),
        memory_(static_cast<std::size_t>(size.blocks) * kBlockTokens, -1),
        window_memory_(static_cast<std::size_t>(size.window_blocks) * kBlockTokens, -1),
        states_(static_cast<std::size_t>(size.states)) {}
  HashRunner(int vocab_size, int num_blocks, int num_states = 0)
      : HashRunner(vocab_size, CacheSize{.blocks = num_blocks, .states = num_states}) {}

  int vocab_size() const override { return vocab_size_; }
  CacheSize cache_size() const override { return size_; }

  at::Tensor hidden(const at::Tensor& tokens_T, const at::Tensor& positions_T,
                    const std::vector<PagedRows>& sequences) override {
    const auto* tokens = tokens_T.const_data_ptr<std::int64_t>();
    const auto* positions = positions_T.const_data_ptr<std::int64_t>();
    largest_batch = std::max<int>(largest_batch, static_cast<int>(tokens_T.size(0)));
    check_that_writes_are_apart(sequences);
    for (const PagedRows& rows : sequences)
      for (int row = rows.begin; row < rows.end; ++row) {
        const auto position = static_cast<int>(positions[row]);
        slot(rows, position) = static_cast<TokenId>(tokens[row]);
        if (size_.has_window()) window_slot(rows, position) = static_cast<TokenId>(tokens[row]);
      }
    const at::Tensor hidden_TH = at::empty({tokens_T.size(0), 2}, at::kFloat);
    auto* out = hidden_TH.data_ptr<float>();
    for (const PagedRows& rows : sequences) {
      for (int row = rows.begin; row < rows.end; ++row) {
        std::vector<TokenId> context;
        for (int p = 0; p <= rows.past + row - rows.begin; ++p) context.push_back(slot(rows, p));
        check_window(rows, context);
        const std::uint64_t in_blocks = context_hash(context);
        const std::uint64_t hash = states_.empty() ? in_blocks : advanced_state(rows, row, context.back()) >> 16;
        CARNOT_CHECK_EQ(hash, in_blocks);
        out[2 * row] = static_cast<float>(hash >> 24);
        out[2 * row + 1] = static_cast<float>(hash & 0xffffff);
      }
    }
    return hidden_TH;
  }

  LogitRows logits(const at::Tensor& hidden_BH, std::span<const float>) override {
    const at::Tensor logits_BV = at::empty({hidden_BH.size(0), vocab_size_}, at::kFloat);
    const auto* hidden = hidden_BH.const_data_ptr<float>();
    auto* out = logits_BV.data_ptr<float>();
    for (std::int64_t b = 0; b < hidden_BH.size(0); ++b) {
      const std::uint64_t hash =
          (static_cast<std::uint64_t>(hidden[2 * b]) << 24) | static_cast<std::uint64_t>(hidden[2 * b + 1]);
      for (int v = 0; v < vocab_size_; ++v) *out++ = hash_logit(hash, v);
    }
    return {.logits_BV = logits_BV};
  }

  void copy_block(int from, int to) override {
    ++copies;
    copy_block(memory_, from, to);
  }

  void copy_window_block(int from, int to) override { copy_block(window_memory_, from, to); }

  void copy_state(int from, int to) override {
    ++state_copies;
    states_.at(static_cast<std::size_t>(to)) = states_.at(static_cast<std::size_t>(from));
  }

  /// Logits after a whole prefix, for a reference implementation that keeps no cache.
  std::vector<double> logits_behind(std::span<const TokenId> prefix) const {
    const std::uint64_t hash = context_hash(prefix);
    std::vector<double> out;
    for (int v = 0; v < vocab_size_; ++v) out.push_back(hash_logit(hash, v));
    return out;
  }

  int copies = 0;
  int state_copies = 0;
  int largest_batch = 0;

 private:
  struct State {
    std::uint64_t hash = 0;
    int num_tokens = 0;
  };

  /// A real forward pass writes the sequences' blocks and states at the same time.
  void check_that_writes_are_apart(const std::vector<PagedRows>& sequences) const {
    std::set<int> written, window_written, advanced;
    for (const PagedRows& rows : sequences) {
      for (int block = rows.past / kBlockTokens; block * kBlockTokens < rows.past + rows.end - rows.begin; ++block)
        CARNOT_CHECK(written.insert(rows.blocks[block]).second &&
                         (!size_.has_window() || window_written.insert(rows.window_blocks[block]).second),
                     "two sequences of one forward pass write the same block");
      CARNOT_CHECK_EQ(rows.state >= 0, !states_.empty());
      if (rows.state < 0) continue;
      CARNOT_CHECK_LT(rows.state, size_.states);
      CARNOT_CHECK(advanced.insert(rows.state).second, "two sequences of one forward pass advance the same state");
    }
  }

  /// The sequence's state after one more of its rows.
  std::uint64_t advanced_state(const PagedRows& rows, int row, TokenId token) {
    State& state = states_[static_cast<std::size_t>(rows.state)];
    if (row == rows.begin && rows.past == 0) state = {};
    CARNOT_CHECK_EQ(state.num_tokens, rows.past + row - rows.begin);
    ++state.num_tokens;
    return state.hash = extended_hash(state.hash, token);
  }

  TokenId& slot(const PagedRows& rows, int position) {
    const int block = rows.blocks[position / kBlockTokens];
    return memory_[block * kBlockTokens + position % kBlockTokens];
  }

  TokenId& window_slot(const PagedRows& rows, int position) {
    const int block = rows.window_blocks[position / kBlockTokens];
    CARNOT_CHECK_GE(block, 0);
    return window_memory_[block * kBlockTokens + position % kBlockTokens];
  }

  /// From the run of blocks on in which the window of the context's last token begins.
  void check_window(const PagedRows& rows, std::span<const TokenId> context) {
    if (!size_.has_window()) return;
    const int end = static_cast<int>(context.size()), seen = std::max(0, end - size_.window);
    constexpr int kRun = kBlocksOfRun * kBlockTokens;
    for (int p = seen / kRun * kRun; p < end; ++p)
      CARNOT_CHECK_EQ(window_slot(rows, p), context[static_cast<std::size_t>(p)]);
  }

  static void copy_block(std::vector<TokenId>& memory, int from, int to) {
    for (int i = 0; i < kBlockTokens; ++i) memory[to * kBlockTokens + i] = memory[from * kBlockTokens + i];
  }

  int vocab_size_;
  CacheSize size_;
  std::vector<TokenId> memory_, window_memory_;
  std::vector<State> states_;
};

}  // namespace carnot::testing
