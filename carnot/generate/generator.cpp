#include "carnot/generate/generator.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "carnot/base/check.h"
#include "carnot/engine/decoder_runner.h"
#include "carnot/engine/engine.h"
#include "carnot/generate/text_stream.h"

namespace carnot {
namespace {

constexpr std::int64_t kMostCacheTokens = 65536;

int token_limit(const Model& model, std::size_t prompt_tokens, const GenerateOptions& options) {
  return std::min(options.max_tokens, model.config().max_positions - static_cast<int>(prompt_tokens));
}

int cache_blocks(const Model& model, std::span<const std::vector<TokenId>> prompts, const GenerateOptions& options) {
  std::int64_t longest = 0;
  for (const auto& prompt : prompts)
    longest = std::max(longest, static_cast<std::int64_t>(prompt.size()) + token_limit(model, prompt.size(), options));
  const auto texts = static_cast<std::int64_t>(prompts.size()) * options.samples;
  const std::int64_t at_a_time = std::min<std::int64_t>(options.batch, texts);
  const std::int64_t wanted =
      options.cache_tokens > 0 ? options.cache_tokens : std::min(longest * at_a_time, kMostCacheTokens);
  const std::int64_t tokens = std::max(wanted, longest);
  // A partly filled block for every text, and one for the prompt that they share.
  return static_cast<int>((tokens + kBlockTokens - 1) / kBlockTokens + at_a_time + 1);
}

/// One text in work.
struct Running {
  GeneratedText result{};
  TextStream stream;
};

class Generator {
 public:
  Generator(const Model& model, const Tokenizer& tokenizer, std::span<const std::vector<TokenId>> prompts,
            const GenerateOptions& options, const GenerateEvents& events)
      : model_(model),
        tokenizer_(tokenizer),
        prompts_(prompts),
        options_(options),
        events_(events),
        runner_(model, cache_blocks(model, prompts, options)),
        engine_(runner_, {.drawable_tokens = std::min(tokenizer.vocab_size(), model.config().vocab_size)}) {}

  bool run() {
    while (next_delivery_.first < prompts_.size()) {
      if (!events_.go_on()) return false;
      admit();
      const StepResult& step = engine_.step();
      CARNOT_CHECK_EQ(step.too_long.size(), std::size_t{0});  // the cache holds the longest text
      for (const SampledToken& token : step.tokens) take(token);
      if (!deliver()) return false;
    }
    return true;
  }

 private:
  using Number = std::pair<std::size_t, int>;  ///< prompt, sample

  Number after(Number number) const {
    return number.second + 1 < options_.samples ? Number{number.first, number.second + 1} : Number{number.first + 1, 0};
  }

  /// Starts texts while there is room. A prompt is computed once; its samples are forks of it.
  void admit() {
    while (next_start_.first < prompts_.size() && static_cast<int>(running_.size()) < options_.batch) {
      const std::vector<TokenId>& prompt = prompts_[next_start_.first];
      if (!root_) root_ = engine_.start(prompt);
      SequenceId sequence = *root_;
      const bool last = next_start_.second + 1 == options_.samples;
      if (options_.samples > 1) {
        if (!engine_.prefilled(*root_)) return;
        sequence = engine_.fork(*root_, static_cast<int>(prompt.size()));
        if (last) engine_.release(*root_);
      }
      if (last) root_.reset();
      begin(sequence, next_start_);
      next_start_ = after(next_start_);
    }
  }

  void begin(SequenceId sequence, Number number) {
    engine_.sample(
        sequence,
        {.sampling = options_.sampling,
         .key = {.seed = options_.seed, .group = number.first, .sibling = static_cast<std::uint64_t>(number.second)},
         .max_tokens = token_limit(model_, prompts_[number.first].size(), options_),
         .stop_tokens = options_.stop_tokens});
    running_.emplace(sequence, Running{.result = {.prompt = number.first, .sample = number.second},
                                       .stream = TextStream(tokenizer_, options_.stop_strings)});
  }

  void take(const SampledToken& token) {
    const auto found = running_.find(token.sequence);
    CARNOT_CHECK(found != running_.end(), "a token of a text that has ended");
    Running& running = found->second;
    GeneratedText& result = running.result;
    result.draws.push_back(token.draw);
    if (token.end != SampleEnd::StopToken) add(result, running.stream.push(token.draw.token));
    if (const auto& stop = running.stream.stop_string()) {
      result.stop_string = *stop;
      result.finish = Finish::StopString;
    } else if (token.end == SampleEnd::GoesOn) {
      return;
    } else {
      result.finish = token.end == SampleEnd::StopToken ? Finish::StopToken : Finish::Length;
      add(result, running.stream.finish());
    }
    engine_.release(token.sequence);
    finished_.emplace(Number{result.prompt, result.sample}, std::move(result));
    running_.erase(found);
  }

  void add(GeneratedText& result, const std::string& piece) {
    if (piece.empty()) return;
    result.text += piece;
    if (events_.on_piece) events_.on_piece(result.prompt, result.sample, piece);
  }

  bool deliver() {
    for (auto found = finished_.find(next_delivery_); found != finished_.end();
         found = finished_.find(next_delivery_)) {
      if (!events_.on_text(found->second)) return false;
      finished_.erase(found);
      next_delivery_ = after(next_delivery_);
    }
    return true;
  }

  const Model& model_;
  const Tokenizer& tokenizer_;
  std::span<const std::vector<TokenId>> prompts_;
  const GenerateOptions& options_;
  const GenerateEvents& events_;
  DecoderRunner runner_;
  Engine engine_;

  Number next_start_{}, next_delivery_{};
  std::optional<SequenceId> root_;  ///< of the prompt whose samples are being started
  std::map<SequenceId, Running> running_;
  std::map<Number, GeneratedText> finished_;
};

}  // namespace

bool generate(const Model& model, const Tokenizer& tokenizer, std::span<const std::vector<TokenId>> prompts,
              const GenerateOptions& options, const GenerateEvents& events) {
  CARNOT_CHECK_GE(options.samples, 1);
  CARNOT_CHECK_GE(options.batch, 1);
  for (const auto& prompt : prompts) {
    CARNOT_CHECK_GT(prompt.size(), std::size_t{0});
    CARNOT_CHECK_LT(static_cast<int>(prompt.size()), model.config().max_positions);
  }
  return Generator(model, tokenizer, prompts, options, events).run();
}

}  // namespace carnot
