#include "carnot/serving/text_batch.h"

#include <algorithm>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

constexpr int kRowsOfForward = EngineOptions{}.max_batch_tokens;

/// Of the texts, and of the prompt that they share: each has a partly filled block. A cache without windows
/// or states ignores their sizes.
CacheSize cache_size(const Model& model, const TextBatchOptions& options) {
  const int sequences = options.texts + 1;
  const int blocks = (options.cache_tokens + kBlockTokens - 1) / kBlockTokens + sequences;
  const std::int64_t in_window = window_blocks_for(model.config().window, sequences, kRowsOfForward, blocks);
  return {.blocks = blocks, .states = sequences, .window_blocks = static_cast<int>(in_window)};
}

}  // namespace

TextBatch::TextBatch(const Model& model, const Tokenizer& tokenizer, const TextBatchOptions& options)
    : tokenizer_(tokenizer),
      options_(options),
      runner_(model, cache_size(model, options)),
      engine_(runner_, {.max_batch_tokens = kRowsOfForward,
                        .drawable_tokens = std::min(tokenizer.vocab_size(), model.config().vocab_size)}) {
  CARNOT_CHECK_GE(options.texts, 1);
}

void TextBatch::add(TextJobId id, TextJob job) {
  CARNOT_CHECK_GE(job.samples, 1);
  CARNOT_CHECK_LE(static_cast<std::int64_t>(job.prompt.size()) + job.max_tokens,
                  static_cast<std::int64_t>(options_.cache_tokens));
  waiting_.push_back({.id = id, .job = std::move(job)});
  admit();
}

void TextBatch::cancel(TextJobId id) {
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    if (waiting.id == id && waiting.root) engine_.release(*waiting.root);
    return waiting.id == id;
  });
  std::erase_if(running_, [&](const auto& running) {
    if (running.second.id == id) engine_.release(running.first);
    return running.second.id == id;
  });
}

void TextBatch::admit() {
  while (!waiting_.empty() && static_cast<int>(running_.size()) < options_.texts) {
    if (!begin_next(waiting_.front())) return;
    if (waiting_.front().next_sample == waiting_.front().job.samples) waiting_.pop_front();
  }
}

bool TextBatch::begin_next(Waiting& waiting) {
  const TextJob& job = waiting.job;
  const bool last = waiting.next_sample + 1 == job.samples;
  if (!waiting.root) waiting.root = engine_.start(job.prompt);
  SequenceId sequence = *waiting.root;
  if (job.samples > 1) {
    if (!engine_.prefilled(sequence)) return false;
    sequence = engine_.fork(*waiting.root, static_cast<int>(job.prompt.size()));
    if (last) engine_.release(*waiting.root);
  }
  if (last) waiting.root.reset();
  DrawKey key = job.key;
  key.sibling += static_cast<std::uint64_t>(waiting.next_sample);
  engine_.sample(sequence, {.sampling = job.sampling,
                            .key = key,
                            .max_tokens = job.max_tokens,
                            .stop_tokens = job.stop_tokens,
                            .likeliest = job.likeliest});
  running_.emplace(
      sequence,
      Running{.id = waiting.id, .sample = waiting.next_sample++, .stream = TextStream(tokenizer_, job.stop_strings)});
  return true;
}

const std::vector<TextStep>& TextBatch::step() {
  admit();
  steps_.clear();
  const StepResult& result = engine_.step();
  CARNOT_CHECK_EQ(result.too_long.size(), std::size_t{0});  // the cache holds the longest text
  for (const SampledToken& token : result.tokens) take(token);
  return steps_;
}

void TextBatch::take(const SampledToken& token) {
  const auto found = running_.find(token.sequence);
  CARNOT_CHECK(found != running_.end(), "a token of a text that has ended");
  Running& running = found->second;
  TextStep step{.job = running.id, .sample = running.sample, .draw = token.draw, .likeliest = token.likeliest};
  if (token.end != SampleEnd::StopToken) step.piece = running.stream.push(token.draw.token);
  if (const auto& stop = running.stream.stop_string()) {
    step.stop_string = *stop;
    step.finish = Finish::StopString;
  } else if (token.end != SampleEnd::GoesOn) {
    step.finish = token.end == SampleEnd::StopToken ? Finish::StopToken : Finish::Length;
    step.piece += running.stream.finish();
  }
  if (step.finish) {
    engine_.release(token.sequence);
    running_.erase(found);
  }
  steps_.push_back(std::move(step));
}

}  // namespace carnot
