// retrieval/bm25/analyzer.h -- turns text into the words that an index compares.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace carnot {

/// The words of a text, in order. Called from several threads at once.
using Analyzer = std::function<std::vector<std::string>(std::string_view)>;

/// Longest runs of letters and digits, ASCII letters in lower case. Bytes above 127 count as letters.
std::vector<std::string> alphanumeric_words(std::string_view text);

}  // namespace carnot
