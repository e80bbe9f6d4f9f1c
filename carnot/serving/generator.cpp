#include "carnot/serving/generator.h"

#include <algorithm>
#include <map>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

int token_limit(const Model& model, std::size_t prompt_tokens, const GenerateOptions& options) {
  return std::min(options.max_tokens, model.config().max_positions - static_cast<int>(prompt_tokens));
}

int cache_tokens(const Model& model, std::span<const std::vector<TokenId>> prompts, const GenerateOptions& options) {
  std::int64_t longest = 0;
  for (const auto& prompt : prompts)
    longest = std::max(longest, static_cast<std::int64_t>(prompt.size()) + token_limit(model, prompt.size(), options));
  const auto texts = static_cast<std::int64_t>(prompts.size()) * options.samples;
  const std::int64_t at_a_time = std::min<std::int64_t>(options.batch, texts);
  const std::int64_t wanted =
      options.cache_tokens > 0 ? options.cache_tokens : std::min(longest * at_a_time, kMostCacheTokens);
  return static_cast<int>(std::max(wanted, longest));
}

int texts_at_a_time(std::span<const std::vector<TokenId>> prompts, const GenerateOptions& options) {
  const auto texts = static_cast<std::int64_t>(prompts.size()) * options.samples;
  return static_cast<int>(std::clamp<std::int64_t>(texts, 1, options.batch));
}

class Generator {
 public:
  Generator(const Model& model, const Tokenizer& tokenizer, std::span<const std::vector<TokenId>> prompts,
            const GenerateOptions& options, const GenerateEvents& events)
      : model_(model),
        prompts_(prompts),
        options_(options),
        events_(events),
        batch_(model, tokenizer,
               {.texts = texts_at_a_time(prompts, options), .cache_tokens = cache_tokens(model, prompts, options)}) {}

  bool run() {
    while (next_delivery_.first < prompts_.size()) {
      if (!events_.go_on()) return false;
      while (next_prompt_ < prompts_.size() && !batch_.has_waiting()) add(next_prompt_++);
      for (const TextStep& step : batch_.step()) take(step);
      if (!deliver()) return false;
    }
    return true;
  }

 private:
  using Number = std::pair<std::size_t, int>;  ///< prompt, sample

  Number after(Number number) const {
    return number.second + 1 < options_.samples ? Number{number.first, number.second + 1} : Number{number.first + 1, 0};
  }

  void add(std::size_t prompt) {
    batch_.add(static_cast<TextJobId>(prompt), {.prompt = prompts_[prompt],
                                                .samples = options_.samples,
                                                .sampling = options_.sampling,
                                                .key = {.seed = options_.seed, .group = prompt},
                                                .max_tokens = token_limit(model_, prompts_[prompt].size(), options_),
                                                .stop_tokens = options_.stop_tokens,
                                                .stop_strings = options_.stop_strings});
  }

  void take(const TextStep& step) {
    const Number number{static_cast<std::size_t>(step.job), step.sample};
    GeneratedText& text = running_[number];
    text.draws.push_back(step.draw);
    text.text += step.piece;
    if (!step.piece.empty() && events_.on_piece) events_.on_piece(number.first, number.second, step.piece);
    if (!step.finish) return;
    text.prompt = number.first;
    text.sample = number.second;
    text.finish = *step.finish;
    text.stop_string = step.stop_string;
    finished_.insert(running_.extract(number));
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
  std::span<const std::vector<TokenId>> prompts_;
  const GenerateOptions& options_;
  const GenerateEvents& events_;
  TextBatch batch_;

  std::size_t next_prompt_ = 0;
  Number next_delivery_{};
  std::map<Number, GeneratedText> running_, finished_;
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
