#include "carnot/worlds/reward/scorer.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "carnot/core/base/json.h"
#include "carnot/core/base/json_schema.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/worlds/reward/answer_metrics.h"
#include "carnot/worlds/reward/maths_answer.h"
#include "carnot/worlds/reward/maths_normal_form.h"
#include "carnot/worlds/reward/maths_value.h"
#include "carnot/worlds/reward/pattern.h"

namespace carnot {
namespace {

using Made = Result<std::unique_ptr<Scorer>>;

double as_score(bool right) { return right ? 1 : 0; }

/// A scorer that is a function of answer and golds; a response without an answer gets 0.
template <double (*function)(const std::string&, std::span<const std::string>)>
class AnswerScorer final : public Scorer {
 public:
  double score(const ScoredResponse& scored) const override {
    return scored.answer ? function(*scored.answer, scored.golds) : 0;
  }
};

template <double (*function)(const std::string&, std::span<const std::string>)>
Made make_answer_scorer(const ScorerOptions&) {
  return std::unique_ptr<Scorer>(std::make_unique<AnswerScorer<function>>());
}

template <class Same>
double any_of_golds(std::span<const std::string> golds, const Same& same) {
  return as_score(std::any_of(golds.begin(), golds.end(), same));
}

double exact(const std::string& answer, std::span<const std::string> golds) {
  return as_score(exact_match(answer, golds));
}

double containing(const std::string& answer, std::span<const std::string> golds) {
  return as_score(contains_answer(answer, golds));
}

double token_f1(const std::string& answer, std::span<const std::string> golds) { return answer_f1(answer, golds); }

double equal_number(const std::string& answer, std::span<const std::string> golds) {
  const auto value = maths_value(normalize_maths(answer));
  return value ? any_of_golds(golds,
                              [&](const std::string& gold) {
                                const auto right = maths_value(normalize_maths(gold));
                                return right && std::abs(*value - *right) <= 1e-6 * std::max(1.0, std::abs(*right));
                              })
               : 0;
}

double equal_maths(const std::string& answer, std::span<const std::string> golds) {
  return any_of_golds(golds, [&](const std::string& gold) { return maths_equal(answer, gold); });
}

bool is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; }

/// The letter of a choice, in upper case: in brackets where one is, else the last capital that is alone, else the
/// only character; 0 if there is none.
char choice_of(std::string_view text) {
  text = trim(text);
  char alone = 0, bracketed = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_letter(text[i])) continue;
    const bool begins = i == 0 || !is_word(text[i - 1]), ends = i + 1 == text.size() || !is_word(text[i + 1]);
    if (!begins || !ends) continue;
    if (i > 0 && i + 1 < text.size() && text[i - 1] == '(' && text[i + 1] == ')') bracketed = text[i];
    // "I" and "A" are words of English, but an answer that ends in one means the choice.
    if (text[i] <= 'Z') alone = text[i];
  }
  const char found = bracketed != 0                           ? bracketed
                     : alone != 0                             ? alone
                     : text.size() == 1 && is_letter(text[0]) ? text[0]
                                                              : 0;
  return found >= 'a' ? static_cast<char>(found - 'a' + 'A') : found;
}

double equal_choice(const std::string& answer, std::span<const std::string> golds) {
  const char choice = choice_of(answer);
  return choice == 0 ? 0 : any_of_golds(golds, [&](const std::string& gold) { return choice_of(gold) == choice; });
}

class PatternScorer final : public Scorer {
 public:
  explicit PatternScorer(Pattern pattern) : pattern_(std::move(pattern)) {}
  double score(const ScoredResponse& scored) const override { return as_score(pattern_.matches(scored.response)); }

 private:
  Pattern pattern_;
};

Made make_pattern(const ScorerOptions& options) {
  if (options.pattern.empty()) return Error{"env.pattern: empty; the scorer 'pattern' expects a regular expression"};
  auto pattern = Pattern::compile(options.pattern);
  if (!pattern) return Error{"env.pattern: " + pattern.error().message};
  return std::unique_ptr<Scorer>(std::make_unique<PatternScorer>(std::move(pattern).value()));
}

class JsonScorer final : public Scorer {
 public:
  explicit JsonScorer(std::optional<JsonSchema> schema) : schema_(std::move(schema)) {}

  double score(const ScoredResponse& scored) const override {
    if (!scored.answer) return 0;
    const auto parsed = parse_json(*scored.answer, "answer");
    if (!parsed) return 0;
    return as_score(!schema_ || schema_->fits(*parsed));
  }

 private:
  std::optional<JsonSchema> schema_;
};

Made make_json(const ScorerOptions& options) {
  if (options.schema.empty()) return std::unique_ptr<Scorer>(std::make_unique<JsonScorer>(std::nullopt));
  CARNOT_ASSIGN_OR_RETURN(const auto parsed, parse_json(options.schema, "env.schema"));
  CARNOT_ASSIGN_OR_RETURN(auto schema, JsonSchema::compile(parsed, "env.schema"));
  return std::unique_ptr<Scorer>(std::make_unique<JsonScorer>(std::move(schema)));
}

class FormatScorer final : public Scorer {
 public:
  double score(const ScoredResponse& scored) const override {
    std::string_view rest = trim(scored.response);
    return as_score(take(rest, "think") && take(rest, "answer") && rest.empty());
  }

 private:
  /// Takes <name>...</name> from the front, where neither tag occurs again in it.
  static bool take(std::string_view& rest, const std::string& name) {
    const std::string open = "<" + name + ">", close = "</" + name + ">";
    if (!rest.starts_with(open)) return false;
    rest.remove_prefix(open.size());
    const std::size_t end = rest.find(close);
    if (end == std::string_view::npos || rest.find(open) < end) return false;
    rest = trim(rest.substr(end + close.size()));
    return true;
  }
};

Made make_format(const ScorerOptions&) { return std::unique_ptr<Scorer>(std::make_unique<FormatScorer>()); }

class LengthScorer final : public Scorer {
 public:
  explicit LengthScorer(int length) : length_(length) {}
  double score(const ScoredResponse& scored) const override {
    return std::clamp(2 - static_cast<double>(count_characters(scored.response)) / length_, 0.0, 1.0);
  }

 private:
  int length_;
};

Made make_length(const ScorerOptions& options) {
  return std::unique_ptr<Scorer>(std::make_unique<LengthScorer>(options.length));
}

std::optional<std::string> tagged(std::string_view response, std::string_view tag) {
  const std::string open = "<" + std::string(tag) + ">", close = "</" + std::string(tag) + ">";
  const std::size_t begin = response.rfind(open);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view rest = response.substr(begin + open.size());
  const std::size_t end = rest.find(close);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(trim(rest.substr(0, end)));
}

std::string last_line(std::string_view response) {
  response = trim(response);
  return std::string(trim(response.substr(response.rfind('\n') + 1)));
}

}  // namespace

std::optional<std::string> answer_at(AnswerPlace place, std::string_view response, std::string_view tag) {
  switch (place) {
    case AnswerPlace::Whole: return std::string(trim(response));
    case AnswerPlace::Tag: return tagged(response, tag);
    case AnswerPlace::Boxed: return boxed_content(response);
    case AnswerPlace::Hashes: return marked_answer(response);
    case AnswerPlace::LastNumber: return last_number(response);
    case AnswerPlace::LastLine: return last_line(response);
  }
  return std::nullopt;
}

const std::vector<ScorerEntry>& scorers() {
  static const std::vector<ScorerEntry> table = {
      {"exact_match", "the answer equals a right one, by SQuAD's normalisation", true, make_answer_scorer<exact>},
      {"contains", "the answer contains a right one", true, make_answer_scorer<containing>},
      {"f1", "words that the answer shares with a right one", true, make_answer_scorer<token_f1>},
      {"number", "the answer is the same number", true, make_answer_scorer<equal_number>},
      {"maths", "the answer is the same mathematics", true, make_answer_scorer<equal_maths>},
      {"choice", "the answer is the letter of the right choice", true, make_answer_scorer<equal_choice>},
      {"pattern", "the response matches env.pattern", false, make_pattern},
      {"json", "the answer is JSON that fits env.schema", false, make_json},
      {"format", "the response is <think>...</think><answer>...</answer>", false, make_format},
      {"length", "1 up to env.length characters, falling to 0 at twice as many", false, make_length},
  };
  return table;
}

}  // namespace carnot
