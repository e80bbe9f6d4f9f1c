// worlds/reward/answer_metrics.h -- how right a short answer is: exact match, containment, token F1; finding answers.
//
// Normalisation is that of SQuAD (Rajpurkar et al. 2016), in this order: lower case; ASCII punctuation deleted; the
// whole words a, an, the become blanks; runs of white space become one blank. Texts are UTF-8; bytes that are not stay
// as they are.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carnot {

std::string normalize_answer(std::string_view text);

/// The normalised prediction equals any normalised gold answer.
bool exact_match(std::string_view prediction, std::span<const std::string> golds);

/// The normalised prediction contains any normalised gold answer.
bool contains_answer(std::string_view prediction, std::span<const std::string> golds);

/// F1 of the two bags of normalised words, the best over the gold answers, in [0, 1]. Where either side is "yes", "no"
/// or "noanswer", anything but equality counts 0 (HotpotQA, Yang et al. 2018).
double answer_f1(std::string_view prediction, std::span<const std::string> golds);

/// The gold answers that `<|answer_split|>` joins, stripped of white space at both ends.
std::vector<std::string> split_gold_answers(std::string_view joined);

/// The content of the last `\boxed{...}`, up to the brace that balances its own; `\{` and `\}` count for nothing.
/// Empty if there is no box or the last one is not closed. Stripped of white space at both ends.
std::optional<std::string> boxed_content(std::string_view text);

}  // namespace carnot
