// reference/gain_outcome.h -- IGPO's released outcome reward, for comparison with its recorded results.
#pragma once

#include <string>

namespace carnot::reference {

/// -2 where a think, tool_call, code or answer tag is unbalanced or there is no answer; otherwise the best F1 of the
/// answer's set of words (lower case, punctuation read as space) against the alternatives of `ground_truth`, which
/// are separated by `<|answer_split|>`.
double gain_outcome(const std::string& solution, const std::string& ground_truth);

}  // namespace carnot::reference
