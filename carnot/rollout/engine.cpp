#include "carnot/rollout/engine.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>

#include "carnot/base/check.h"
#include "carnot/base/thread_pool.h"

namespace carnot {
namespace {

class Stopwatch {
 public:
  /// Seconds since construction or the last lap.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - start_).count();
    start_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

at::Tensor view_of(std::vector<std::int64_t>& values) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kLong);
}

}  // namespace

void EngineOptions::fields(FieldVisitor& visit) {
  visit.field("max_batch_tokens", max_batch_tokens, "rows of one forward: prefill and decode together", at_least(1));
  visit.field("logits_megabytes", logits_megabytes, "memory of the logits that exist at one time", at_least(1));
  visit.field("drawable_tokens", drawable_tokens, "ids from here on are never drawn; 0: all are drawn", at_least(0));
}

Engine::Engine(Policy& policy, const EngineOptions& options)
    : policy_(policy), options_(options), pool_(policy.num_blocks()) {
  CARNOT_CHECK_GE(options.max_batch_tokens, 1);
}

Engine::Sequence& Engine::at(SequenceId sequence) {
  CARNOT_CHECK_LT(static_cast<std::size_t>(sequence), sequences_.size());
  Sequence& found = sequences_[static_cast<std::size_t>(sequence)];
  CARNOT_CHECK(found.live, "sequence " + std::to_string(sequence) + " was released");
  return found;
}

const Engine::Sequence& Engine::at(SequenceId sequence) const { return const_cast<Engine*>(this)->at(sequence); }

SequenceId Engine::add(Sequence sequence) {
  SequenceId id = static_cast<SequenceId>(sequences_.size());
  if (unused_.empty()) {
    sequences_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  sequence.live = true;
  sequence.prefilling = sequence.due() > 0;
  sequences_[static_cast<std::size_t>(id)] = std::move(sequence);
  order_.push_back(id);
  return id;
}

void Engine::check_ids(std::span<const TokenId> tokens) const {
  for (TokenId token : tokens) {
    CARNOT_CHECK_GE(token, 0);
    CARNOT_CHECK_LT(token, policy_.vocab_size());
  }
}

SequenceId Engine::start(std::span<const TokenId> tokens) {
  CARNOT_CHECK(!tokens.empty(), "a sequence starts with a token");
  check_ids(tokens);
  Sequence sequence;
  sequence.tokens.assign(tokens.begin(), tokens.end());
  return add(std::move(sequence));
}

SequenceId Engine::fork(SequenceId parent, int num_tokens) {
  const Sequence& from = at(parent);
  CARNOT_CHECK_GT(num_tokens, 0);
  CARNOT_CHECK_LE(num_tokens, static_cast<int>(from.tokens.size()));
  Sequence child;
  child.tokens.assign(from.tokens.begin(), from.tokens.begin() + num_tokens);
  child.table = carnot::fork(pool_, from.table, std::min(from.table.num_tokens, num_tokens - 1));
  return add(std::move(child));
}

void Engine::append(SequenceId id, std::span<const TokenId> tokens) {
  Sequence& sequence = at(id);
  CARNOT_CHECK(!sequence.sampling, "tokens cannot be appended to a sequence that samples");
  check_ids(tokens);
  sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
  sequence.prefilling = sequence.due() > 0;
}

void Engine::sample(SequenceId id, SampleRequest request) {
  Sequence& sequence = at(id);
  CARNOT_CHECK(!sequence.sampling, "the sequence samples already");
  CARNOT_CHECK_GE(request.max_tokens, 1);
  sequence.request = std::move(request);
  sequence.sampled = 0;
  sequence.sampling = true;
  sequence.prefilling = false;
}

void Engine::stop_sampling(SequenceId id) { at(id).sampling = false; }

void Engine::release(SequenceId id) {
  Sequence& sequence = at(id);
  carnot::release(pool_, sequence.table);
  sequence.live = sequence.sampling = sequence.prefilling = false;
  order_.erase(std::find(order_.begin(), order_.end(), id));
  unused_.push_back(id);
}

std::span<const TokenId> Engine::tokens(SequenceId sequence) const { return at(sequence).tokens; }

bool Engine::prefilled(SequenceId sequence) const { return !at(sequence).prefilling; }

bool Engine::has_work() const {
  return std::any_of(order_.begin(), order_.end(),
                     [&](SequenceId id) { return sequences_[static_cast<std::size_t>(id)].runnable(); });
}

const StepResult& Engine::step() {
  const at::NoGradGuard no_grad;
  Stopwatch watch;
  result_.tokens.clear();
  result_.too_long.clear();
  schedule();
  metrics_.seconds_scheduling += watch.lap();
  if (rows_.empty()) {
    CARNOT_CHECK(!result_.too_long.empty(), "a step without work");
    return result_;
  }
  const at::Tensor hidden_TH = forward();
  metrics_.seconds_forward += watch.lap();
  sample_rows(hidden_TH);
  metrics_.seconds_sampling += watch.lap();
  ++metrics_.steps;
  return result_;
}

// Oldest first; what does not fit waits. The oldest runnable sequence may evict all others, so every step advances.
void Engine::schedule() {
  row_tokens_.clear();
  row_positions_.clear();
  rows_.clear();
  sample_rows_.clear();
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const int rows_left = options_.max_batch_tokens - static_cast<int>(row_tokens_.size());
    if (rows_left == 0) break;
    const SequenceId id = order_[i];
    Sequence& sequence = at(id);
    if (!sequence.runnable()) continue;
    const int num_tokens = static_cast<int>(sequence.tokens.size());
    if (blocks_for(num_tokens) > pool_.size()) {
      sequence.sampling = sequence.prefilling = false;
      result_.too_long.push_back(id);
      continue;
    }
    // A sequence without a block starts only where all of it fits, lest many half-computed ones evict each other.
    const bool waits = sequence.table.blocks.empty() && blocks_for(num_tokens + 1) > pool_.num_free() && !rows_.empty();
    if (waits) continue;
    const int count = room_for(i, std::min(sequence.due(), rows_left));
    if (count > 0) add_rows(id, count);
  }
}

// How many of the `wanted` next tokens of the sequence can be computed now, after evicting others if none could.
int Engine::room_for(std::size_t index, int wanted) {
  const Sequence& sequence = at(order_[index]);
  if (tokens_that_fit(pool_, sequence.table, pool_.num_free()) == 0) make_room(index);
  return std::min(wanted, tokens_that_fit(pool_, sequence.table, pool_.num_free()));
}

// Until one token of order_[index] fits: idle sequences give up what only they hold, then younger ones do; then idle
// and younger ones give up everything.
void Engine::make_room(std::size_t index) {
  const Sequence& needy = at(order_[index]);
  for (const bool keep_shared : {true, false}) {
    for (const bool idle : {true, false}) {
      for (std::size_t i = order_.size(); i-- > (idle ? 0 : index + 1);) {
        if (blocks_needed(pool_, needy.table, 1) <= pool_.num_free()) return;
        Sequence& victim = at(order_[i]);
        if (i == index || victim.runnable() == idle) continue;
        evict(victim, keep_shared ? tokens_in_shared_blocks(pool_, victim.table) : 0);
      }
    }
  }
}

void Engine::evict(Sequence& sequence, int kept_tokens) {
  if (sequence.table.num_tokens == kept_tokens) return;
  truncate(pool_, sequence.table, kept_tokens);
  ++metrics_.evictions;
}

void Engine::add_rows(SequenceId id, int count) {
  Sequence& sequence = at(id);
  const int past = sequence.table.num_tokens;
  if (const auto copy = carnot::append(pool_, sequence.table, count)) policy_.copy_block(copy->from, copy->to);
  const int begin = static_cast<int>(row_tokens_.size());
  for (int position = past; position < past + count; ++position) {
    row_tokens_.push_back(sequence.tokens[static_cast<std::size_t>(position)]);
    row_positions_.push_back(position);
  }
  rows_.push_back({.begin = begin, .end = begin + count, .past = past, .blocks = sequence.table.blocks});
  if (sequence.due() > 0) return;
  sequence.prefilling = false;
  if (sequence.sampling) sample_rows_.push_back({.sequence = id, .row = begin + count - 1});
}

at::Tensor Engine::forward() {
  metrics_.rows += static_cast<std::int64_t>(row_tokens_.size());
  return policy_.hidden(view_of(row_tokens_), view_of(row_positions_), rows_);
}

// Logits of a strip of rows exist at a time; the head's weights are read once a strip.
void Engine::sample_rows(const at::Tensor& hidden_TH) {
  const auto vocabulary = static_cast<std::size_t>(policy_.vocab_size());
  const std::size_t budget = static_cast<std::size_t>(options_.logits_megabytes) * (std::size_t{1} << 20);
  const std::size_t strip = std::max<std::size_t>(1, budget / (vocabulary * sizeof(float)));
  draws_.resize(sample_rows_.size());
  std::vector<std::int64_t> selected;
  for (std::size_t begin = 0; begin < sample_rows_.size(); begin += strip) {
    const std::size_t end = std::min(begin + strip, sample_rows_.size());
    selected.clear();
    for (std::size_t i = begin; i < end; ++i) selected.push_back(sample_rows_[i].row);
    const at::Tensor hidden_BH = hidden_TH.index_select(0, view_of(selected).to(hidden_TH.device()));
    const at::Tensor logits_BV = policy_.logits(hidden_BH).to(at::kCPU, at::kFloat).contiguous();
    CARNOT_CHECK_EQ(logits_BV.size(1), static_cast<std::int64_t>(vocabulary));
    float* logits = logits_BV.data_ptr<float>();
    kernel_pool().run(static_cast<std::int64_t>(end - begin), [&](std::int64_t i) {
      const auto row = static_cast<std::size_t>(i);
      const SequenceId id = sample_rows_[begin + row].sequence;
      draws_[begin + row] =
          draw_next(sequences_[static_cast<std::size_t>(id)], {logits + row * vocabulary, vocabulary});
    });
  }
  for (std::size_t i = 0; i < sample_rows_.size(); ++i) deliver(sample_rows_[i].sequence, draws_[i]);
}

TokenDraw Engine::draw_next(const Sequence& sequence, std::span<float> logits) const {
  const SampleRequest& request = sequence.request;
  DrawKey key = request.key;
  key.position += static_cast<std::uint64_t>(sequence.sampled);
  const int drawable = options_.drawable_tokens > 0 ? options_.drawable_tokens : static_cast<int>(logits.size());
  const int candidates = sequence.sampled < request.candidate_tokens ? request.candidates : 0;
  return sample_token(logits, request.sampling,
                      {.drawable = drawable, .uniform = uniform(key), .candidates = candidates});
}

void Engine::deliver(SequenceId id, const TokenDraw& draw) {
  Sequence& sequence = at(id);
  sequence.tokens.push_back(draw.token);
  ++sequence.sampled;
  ++metrics_.sampled_tokens;
  const std::vector<TokenId>& stops = sequence.request.stop_tokens;
  SampleEnd end = SampleEnd::GoesOn;
  if (std::find(stops.begin(), stops.end(), draw.token) != stops.end()) {
    end = SampleEnd::StopToken;
  } else if (sequence.sampled == sequence.request.max_tokens) {
    end = SampleEnd::MaxTokens;
  }
  if (end != SampleEnd::GoesOn) sequence.sampling = false;
  result_.tokens.push_back({.sequence = id, .draw = draw, .end = end});
}

}  // namespace carnot
