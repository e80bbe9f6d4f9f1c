#include "carnot/core/engine/engine.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/base/thread_pool.h"

namespace carnot {
namespace {

at::Tensor view_of(std::vector<std::int64_t>& values) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kLong);
}

}  // namespace

void EngineOptions::fields(FieldVisitor& visit) {
  visit.field("max_batch_tokens", max_batch_tokens, "rows of one forward: prefill and decode together", at_least(1));
  visit.field("logits_megabytes", logits_megabytes, "memory of the logits that exist at one time", at_least(1));
  visit.field("drawable_tokens", drawable_tokens, "ids from here on are never drawn; 0: all are drawn", at_least(0));
}

Engine::Engine(ModelRunner& runner, const EngineOptions& options)
    : runner_(runner),
      options_(options),
      manager_(runner.cache_size()),
      scheduler_(sequences_, manager_, options.max_batch_tokens) {}

void Engine::check_ids(std::span<const TokenId> tokens) const {
  for (TokenId token : tokens) {
    CARNOT_CHECK_GE(token, 0);
    CARNOT_CHECK_LT(token, runner_.vocab_size());
  }
}

SequenceId Engine::start(std::span<const TokenId> tokens) {
  CARNOT_CHECK(!tokens.empty(), "a sequence starts with a token");
  check_ids(tokens);
  Sequence sequence;
  sequence.tokens.assign(tokens.begin(), tokens.end());
  return sequences_.add(std::move(sequence));
}

SequenceId Engine::fork(SequenceId parent, int num_tokens) {
  const Sequence& from = sequences_.at(parent);
  CARNOT_CHECK_GT(num_tokens, 0);
  CARNOT_CHECK_LE(num_tokens, from.num_tokens());
  Sequence child;
  child.tokens.assign(from.tokens.begin(), from.tokens.begin() + num_tokens);
  child.table = carnot::fork(manager_, from.table, std::min(from.table.num_tokens, num_tokens - 1));
  return sequences_.add(std::move(child));
}

SequenceId Engine::score(SequenceId parent, int num_tokens, const AnswerRequest& request) {
  const Sequence& from = sequences_.at(parent);
  CARNOT_CHECK_GT(num_tokens, 0);
  CARNOT_CHECK_LE(num_tokens, from.num_tokens());
  CARNOT_CHECK(!request.answer.empty(), "an answer has a token");
  check_ids(request.lead);
  check_ids(request.answer);
  Sequence child;
  child.tokens.assign(from.tokens.begin(), from.tokens.begin() + num_tokens);
  child.tokens.insert(child.tokens.end(), request.lead.begin(), request.lead.end());
  child.scored_begin = child.num_tokens();
  child.score_temperature = request.temperature;
  child.tokens.insert(child.tokens.end(), request.answer.begin(), request.answer.end());
  // The row before the answer is computed here, as its hidden state is wanted.
  const int shared = std::min({from.table.num_tokens, num_tokens, child.scored_begin - 1});
  child.table = carnot::fork(manager_, from.table, shared);
  return sequences_.add(std::move(child));
}

void Engine::append(SequenceId id, std::span<const TokenId> tokens) {
  Sequence& sequence = sequences_.at(id);
  CARNOT_CHECK(!sequence.sampling, "tokens cannot be appended to a sequence that samples");
  check_ids(tokens);
  sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
  sequence.prefilling = sequence.due() > 0;
}

void Engine::sample(SequenceId id, SampleRequest request) {
  Sequence& sequence = sequences_.at(id);
  CARNOT_CHECK(!sequence.sampling, "the sequence samples already");
  CARNOT_CHECK_GE(request.max_tokens, 1);
  sequence.request = std::move(request);
  sequence.sampled = 0;
  sequence.sampling = true;
  sequence.prefilling = false;
}

void Engine::stop_sampling(SequenceId id) { sequences_.at(id).sampling = false; }

void Engine::release(SequenceId id) {
  carnot::release(manager_, sequences_.at(id).table);
  sequences_.remove(id);
}

void Engine::forget_computed() {
  for (const SequenceId id : sequences_.oldest_first()) carnot::release(manager_, sequences_.at(id).table);
}

std::span<const TokenId> Engine::tokens(SequenceId sequence) const { return sequences_.at(sequence).tokens; }

bool Engine::prefilled(SequenceId sequence) const { return !sequences_.at(sequence).prefilling; }

bool Engine::has_work() const {
  return std::ranges::any_of(sequences_.oldest_first(), [&](SequenceId id) { return sequences_.at(id).runnable(); });
}

const StepResult& Engine::step() {
  const at::NoGradGuard no_grad;
  Stopwatch watch;
  scheduler_.schedule(scheduled_);
  result_.tokens.clear();
  result_.scores.clear();
  result_.too_long = scheduled_.too_long;
  end_scores_that_do_not_fit();
  metrics_.evictions = scheduler_.num_evictions();
  metrics_.seconds_scheduling += watch.lap();
  if (scheduled_.sequences.empty()) {
    CARNOT_CHECK(!scheduled_.too_long.empty(), "a step without work");
    return result_;
  }
  const at::Tensor hidden_TH = forward();
  metrics_.seconds_forward += watch.lap();
  measure_rows(hidden_TH);
  metrics_.seconds_sampling += watch.lap();
  ++metrics_.steps;
  return result_;
}

at::Tensor Engine::forward() {
  for (const BlockCopy& copy : scheduled_.copies) runner_.copy_block(copy.from, copy.to);
  for (const BlockCopy& copy : scheduled_.window_copies) runner_.copy_window_block(copy.from, copy.to);
  for (const StateCopy& copy : scheduled_.state_copies) runner_.copy_state(copy.from, copy.to);
  metrics_.rows += static_cast<std::int64_t>(scheduled_.tokens.size());
  return runner_.hidden(view_of(scheduled_.tokens), view_of(scheduled_.positions), scheduled_.sequences);
}

// Logits of a strip of rows exist at a time; the head's weights are read once a strip.
void Engine::measure_rows(const at::Tensor& hidden_TH) {
  const std::vector<SampleRow>& samples = scheduled_.samples;
  const std::vector<ScoreRow>& scores = scheduled_.scores;
  const std::size_t rows = samples.size() + scores.size();
  const auto vocabulary = static_cast<std::size_t>(runner_.vocab_size());
  const std::size_t budget = static_cast<std::size_t>(options_.logits_megabytes) * (std::size_t{1} << 20);
  const std::size_t strip = std::max<std::size_t>(1, budget / (vocabulary * sizeof(float)));
  draws_.resize(samples.size());
  scored_.resize(scores.size());
  std::vector<std::int64_t> selected;
  std::vector<float> inverse_temperatures;
  for (std::size_t begin = 0; begin < rows; begin += strip) {
    const std::size_t end = std::min(begin + strip, rows);
    selected.clear();
    inverse_temperatures.clear();
    for (std::size_t i = begin; i < end; ++i) {
      selected.push_back(i < samples.size() ? samples[i].row : scores[i - samples.size()].row);
      inverse_temperatures.push_back(inverse_temperature(
          i < samples.size() ? sequences_.at(samples[i].sequence).request.sampling.temperature
                             : sequences_.at(scores[i - samples.size()].sequence).score_temperature));
    }
    const at::Tensor hidden_BH = hidden_TH.index_select(0, view_of(selected).to(hidden_TH.device()));
    const LogitRows computed = runner_.logits(hidden_BH, inverse_temperatures);
    const at::Tensor logits_BV = computed.logits_BV.to(at::kCPU, at::kFloat).contiguous();
    CARNOT_CHECK_EQ(logits_BV.size(1), static_cast<std::int64_t>(vocabulary));
    float* logits = logits_BV.data_ptr<float>();
    const std::size_t segments = computed.segments.size() / (end - begin);
    kernel_pool().run(static_cast<std::int64_t>(end - begin), [&](std::int64_t i) {
      const std::size_t at = begin + static_cast<std::size_t>(i);
      const LogitRow row{
          .logits = {logits + static_cast<std::size_t>(i) * vocabulary, vocabulary},
          .segments = std::span(computed.segments).subspan(static_cast<std::size_t>(i) * segments, segments)};
      if (at < samples.size()) {
        draws_[at] = draw_next(samples[at].sequence, row);
        return;
      }
      const ScoreRow& score = scores[at - samples.size()];
      scored_[at - samples.size()] = log_prob_of(row, score.target, sequences_.at(score.sequence).score_temperature);
    });
  }
  for (SampledToken& token : draws_) deliver(std::move(token));
  for (std::size_t i = 0; i < scores.size(); ++i) deliver_score(scores[i].sequence, scored_[i]);
}

SampledToken Engine::draw_next(SequenceId id, const LogitRow& row) const {
  const Sequence& sequence = sequences_.at(id);
  const SampleRequest& request = sequence.request;
  DrawKey key = request.key;
  key.position += static_cast<std::uint64_t>(sequence.sampled);
  const int drawable = options_.drawable_tokens > 0 ? options_.drawable_tokens : static_cast<int>(row.logits.size());
  const int candidates = sequence.sampled < request.candidate_tokens ? request.candidates : 0;
  SampledToken token{.sequence = id,
                     .draw = sample_token(row, request.sampling,
                                          {.drawable = drawable, .uniform = uniform(key), .candidates = candidates})};
  token.likeliest = likeliest_tokens(row.logits, token.draw.logsumexp, request.likeliest);
  return token;
}

void Engine::deliver(SampledToken token) {
  Sequence& sequence = sequences_.at(token.sequence);
  sequence.tokens.push_back(token.draw.token);
  ++sequence.sampled;
  ++metrics_.sampled_tokens;
  const std::vector<TokenId>& stops = sequence.request.stop_tokens;
  if (std::find(stops.begin(), stops.end(), token.draw.token) != stops.end()) {
    token.end = SampleEnd::StopToken;
  } else if (sequence.sampled == sequence.request.max_tokens) {
    token.end = SampleEnd::MaxTokens;
  }
  if (token.end != SampleEnd::GoesOn) sequence.sampling = false;
  result_.tokens.push_back(std::move(token));
}

void Engine::deliver_score(SequenceId id, float log_prob) {
  Sequence& sequence = sequences_.at(id);
  sequence.log_probs.push_back(log_prob);
  if (!sequence.scored()) return;
  result_.scores.push_back({.sequence = id, .log_probs = std::move(sequence.log_probs)});
  release(id);
}

void Engine::end_scores_that_do_not_fit() {
  std::erase_if(result_.too_long, [&](SequenceId id) {
    if (!sequences_.at(id).scores()) return false;
    result_.scores.push_back({.sequence = id});
    release(id);
    return true;
  });
}

}  // namespace carnot
