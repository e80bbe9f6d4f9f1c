// retrieval/bm25/analyzer.h -- turns text into the words that an index compares: by names that an index file keeps and
// a recipe says.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace carnot {

/// The words of a text, in order. Called from several threads at once.
using Analyzer = std::function<std::vector<std::string>(std::string_view)>;

/// Longest runs of letters and digits, ASCII letters in lower case. Bytes above 127 count as letters.
std::vector<std::string> alphanumeric_words(std::string_view text);

enum class IndexWords : std::uint8_t {
  English,       ///< lucene_english_words: stemmed, without stop words
  Alphanumeric,  ///< alphanumeric_words
};
inline const std::vector<std::string> kIndexWords{"english", "alphanumeric"};

Analyzer analyzer_of(IndexWords words);

/// The words that Lucene's EnglishAnalyzer, and so Pyserini, makes of a text.
/// Words as Unicode bounds them (UAX #29), at most 255 characters each: `:`, `.` and `'` between letters and `.`, `'`,
/// `,` and `;` between digits keep a word together, `_` joins; an ideograph or a pictograph is its own word. Then
/// without a possessive 's, in lower case, without 33 stop words, stemmed.
std::vector<std::string> lucene_english_words(std::string_view text);

/// Porter's stemmer for English, as Lucene has it: the stem of a word in lower case: "connections" and "connected"
/// become "connect". Words of one or two letters stay. (M. F. Porter, An algorithm for suffix stripping, 1980, with his
/// two later changes: bli to ble, logi to log.) libstemmer's `porter` lacks these changes and stems words of two
/// letters: 277 of 114,801 words differ.
std::string porter_stem(std::string word);

}  // namespace carnot
