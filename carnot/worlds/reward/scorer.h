// worlds/reward/scorer.h -- how good a response is, by names that a recipe lists with weights.
//
//   exact_match  contains  f1       SQuAD's normalisation (worlds/reward/answer_metrics.h)
//   number  maths                   equal as numbers; equal as mathematics (worlds/reward/maths_answer.h)
//   choice                          the letter of a multiple-choice answer: "B", "(b)", "The answer is B."
//   pattern                         a regular expression matches the response
//   json                            the answer is JSON, and fits a schema where one is given
//   format                          <think>...</think><answer>...</answer> and nothing else
//   length                          1 up to a number of characters, then falling to 0 at twice as many
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

/// Where in a response its answer is.
enum class AnswerPlace {
  Whole,       ///< the response, stripped
  Tag,         ///< between the last <answer> and the </answer> after it
  Boxed,       ///< the last \boxed{}
  Hashes,      ///< the number after ####
  LastNumber,  ///< the last number
  LastLine,    ///< the last line that is not empty
};
inline const std::vector<std::string> kAnswerPlaces{"whole", "tag", "boxed", "hashes", "last_number", "last_line"};

/// The answer of a response; empty if there is nothing at the place.
std::optional<std::string> answer_at(AnswerPlace place, std::string_view response, std::string_view tag = "answer");

/// What a scorer looks at.
struct ScoredResponse {
  std::string_view response{};
  std::optional<std::string> answer{};   ///< what answer_at() found
  std::span<const std::string> golds{};  ///< answers that count as right
};

struct ScorerOptions {
  std::string pattern{};  ///< of `pattern`
  std::string schema{};   ///< of `json`: the text of a JSON schema; empty: any JSON
  int length = 2000;      ///< of `length`, characters
};

/// A scorer gives 0 to 1. Thread-safe.
class Scorer {
 public:
  virtual ~Scorer() = default;
  virtual double score(const ScoredResponse& scored) const = 0;
};

struct ScorerEntry {
  std::string_view name;
  std::string_view summary;
  bool needs_gold;
  Result<std::unique_ptr<Scorer>> (*make)(const ScorerOptions& options);
};

/// Every scorer there is. Adding one: its function and its line in scorer.cpp.
const std::vector<ScorerEntry>& scorers();

}  // namespace carnot
