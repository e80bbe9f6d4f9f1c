#include "carnot/core/rollout/forked_log_probs.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/cache/block_table.h"
#include "carnot/core/nn/kv_cache.h"
#include "carnot/core/nn/token_statistics.h"
#include "carnot/core/rollout/log_prob_pass.h"

namespace carnot {
namespace {

/// Blocks of a fork that grows by `tokens`, its copy of a shared last block included.
int blocks_of_fork(std::size_t tokens) { return blocks_for(static_cast<int>(tokens)) + 1; }

std::size_t rows_of(const ForkedAnswer& answer) { return answer.lead.size() + answer.tokens.size(); }

/// Consecutive items whose rows fit into one forward pass; one that does not fit is alone.
template <class Size>
std::vector<std::vector<int>> batches_of(const std::vector<int>& items, int max_tokens, const Size& size) {
  std::vector<std::vector<int>> batches;
  std::size_t rows = 0;
  for (int item : items) {
    const std::size_t more = size(item);
    if (batches.empty() || rows + more > static_cast<std::size_t>(max_tokens)) {
      batches.emplace_back();
      rows = 0;
    }
    batches.back().push_back(item);
    rows += more;
  }
  return batches;
}

class ForkedPass {
 public:
  ForkedPass(const Model& model, std::span<const SharedContext> contexts, std::span<const ForkedAnswer> answers,
             const LogProbPassOptions& options)
      : model_(model),
        contexts_(contexts),
        answers_(answers),
        options_(options),
        answer_batches_(answer_batches()),
        cache_(model.config(), {.blocks = num_blocks(), .states = num_states()}, model.options()),
        manager_(cache_.size()),
        tables_(contexts.size()) {}

  std::vector<double> run() {
    for (const std::vector<int>& level : levels())
      for (const std::vector<int>& batch :
           batches_of(level, options_.max_tokens, [&](int c) { return context(c).tokens.size(); }))
        compute_contexts(batch);
    std::vector<double> log_probs;
    for (const std::vector<int>& batch : answer_batches_) measure_batch(batch, log_probs);
    return log_probs;
  }

 private:
  const SharedContext& context(int index) const { return contexts_[index]; }
  const ForkedAnswer& answer(int index) const { return answers_[index]; }
  BlockTable& table(int context) { return tables_[static_cast<std::size_t>(context)]; }

  std::vector<std::vector<int>> answer_batches() const {
    std::vector<int> all;
    for (std::size_t i = 0; i < answers_.size(); ++i) all.push_back(static_cast<int>(i));
    return batches_of(all, options_.max_tokens, [&](int a) { return rows_of(answer(a)); });
  }

  /// Of all contexts, and of the answers that are measured together.
  int num_blocks() const {
    int contexts = 0, answers = 0;
    for (const SharedContext& context : contexts_) contexts += blocks_of_fork(context.tokens.size());
    for (const std::vector<int>& batch : answer_batches_) {
      int blocks = 0;
      for (int index : batch) blocks += blocks_of_fork(rows_of(answer(index)));
      answers = std::max(answers, blocks);
    }
    return contexts + answers;
  }

  /// Likewise: one of each.
  int num_states() const {
    std::size_t answers = 0;
    for (const std::vector<int>& batch : answer_batches_) answers = std::max(answers, batch.size());
    return static_cast<int>(contexts_.size() + answers);
  }

  /// Contexts by the number of those before them: a level needs only earlier ones.
  std::vector<std::vector<int>> levels() const {
    std::vector<std::vector<int>> levels;
    std::vector<std::size_t> level_of(contexts_.size());
    for (std::size_t i = 0; i < contexts_.size(); ++i) {
      const int parent = contexts_[i].parent;
      CARNOT_CHECK_LT(parent, static_cast<int>(i));
      level_of[i] = parent < 0 ? 0 : level_of[parent] + 1;
      levels.resize(std::max(levels.size(), level_of[i] + 1));
      levels[level_of[i]].push_back(static_cast<int>(i));
    }
    return levels;
  }

  /// New rows of one sequence in the next forward pass.
  void add_rows(BlockTable& table, std::span<const TokenId> tokens) {
    const int past = table.num_tokens, begin = static_cast<int>(tokens_.size());
    if (tokens.empty()) return;
    const AppendCopies copies = append(manager_, table, static_cast<int>(tokens.size()));
    if (copies.block) cache_.copy_block(copies.block->from, copies.block->to);
    if (copies.state) cache_.copy_state(copies.state->from, copies.state->to);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens_.push_back(tokens[i]);
      positions_.push_back(past + static_cast<std::int64_t>(i));
    }
    rows_.push_back({.begin = begin,
                     .end = static_cast<int>(tokens_.size()),
                     .past = past,
                     .blocks = table.blocks,
                     .state = table.state});
  }

  at::Tensor forward() {
    const at::Tensor hidden_RH = model_.hidden(at::tensor(tokens_, at::kLong), at::tensor(positions_, at::kLong),
                                               PagedAttention{.cache = &cache_, .sequences = rows_});
    tokens_.clear();
    positions_.clear();
    rows_.clear();
    return hidden_RH;
  }

  at::Tensor on_device(const std::vector<std::int64_t>& indices) const {
    return at::tensor(indices, at::kLong).to(model_.options().device());
  }

  void compute_contexts(const std::vector<int>& batch) {
    std::vector<std::int64_t> ends;
    for (int index : batch) {
      const int parent = context(index).parent;
      if (parent >= 0) table(index) = fork(manager_, table(parent), table(parent).num_tokens);
      add_rows(table(index), context(index).tokens);
      ends.push_back(std::ssize(tokens_) - 1);
    }
    const at::Tensor hidden_RH = forward();
    if (!ends_CH_.defined()) ends_CH_ = at::empty({std::ssize(contexts_), hidden_RH.size(1)}, hidden_RH.options());
    ends_CH_.index_copy_(0, on_device({batch.begin(), batch.end()}), hidden_RH.index_select(0, on_device(ends)));
  }

  void measure_batch(const std::vector<int>& batch, std::vector<double>& log_probs) {
    std::vector<BlockTable> forks;
    forks.reserve(batch.size());
    std::vector<std::int64_t> rows, targets;  // rows: those of the forward, behind the contexts' ends
    for (int index : batch) {
      const ForkedAnswer& asked = answer(index);
      const BlockTable& before = table(asked.context);
      forks.push_back(fork(manager_, before, before.num_tokens));
      std::vector<TokenId> fed = asked.lead;
      fed.insert(fed.end(), asked.tokens.begin(), asked.tokens.end() - 1);
      add_rows(forks.back(), fed);
      const std::int64_t end = std::ssize(contexts_) + std::ssize(tokens_);
      rows.push_back(asked.lead.empty() ? asked.context : end - std::ssize(asked.tokens));
      for (std::int64_t left = std::ssize(asked.tokens) - 1; left > 0; --left) rows.push_back(end - left);
      targets.insert(targets.end(), asked.tokens.begin(), asked.tokens.end());
    }
    const at::Tensor known_RH = rows_.empty() ? ends_CH_ : at::cat({ends_CH_, forward()});
    const at::Tensor hidden_TH = known_RH.index_select(0, on_device(rows));
    const TokenStatistics statistics =
        token_statistics(hidden_TH, model_, at::tensor(targets, at::kLong), {.temperature = options_.temperature});
    const std::vector<double> values = to_doubles(statistics.logprob_T);
    log_probs.insert(log_probs.end(), values.begin(), values.end());
    for (BlockTable& table : forks) release(manager_, table);
  }

  const Model& model_;
  std::span<const SharedContext> contexts_;
  std::span<const ForkedAnswer> answers_;
  LogProbPassOptions options_;
  std::vector<std::vector<int>> answer_batches_;
  KvCache cache_;
  BlockManager manager_;
  std::vector<BlockTable> tables_;  ///< by context
  at::Tensor ends_CH_;              ///< hidden states of the contexts' last rows

  std::vector<std::int64_t> tokens_, positions_;  ///< of the next forward pass
  std::vector<PagedRows> rows_;
};

}  // namespace

std::vector<double> forked_log_probs(const Model& model, std::span<const SharedContext> contexts,
                                     std::span<const ForkedAnswer> answers, const LogProbPassOptions& options) {
  if (answers.empty()) return {};
  const at::NoGradGuard no_grad;
  return ForkedPass(model, contexts, answers, options).run();
}

}  // namespace carnot
