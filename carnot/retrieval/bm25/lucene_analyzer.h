// retrieval/bm25/lucene_analyzer.h -- the words that Lucene's EnglishAnalyzer, and so Pyserini, makes of a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace carnot {

/// Words as Unicode bounds them (UAX #29), at most 255 characters each: `:`, `.` and `'` between letters and `.`, `'`,
/// `,` and `;` between digits keep a word together, `_` joins; an ideograph or a pictograph is its own word. Then
/// without a possessive 's, in lower case, without 33 stop words, stemmed (porter_stemmer.h).
std::vector<std::string> lucene_english_words(std::string_view text);

}  // namespace carnot
