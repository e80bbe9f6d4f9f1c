// retrieval/bm25/index_words.h -- how texts become words, by names that an index file keeps and a recipe says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "carnot/retrieval/bm25/analyzer.h"

namespace carnot {

enum class IndexWords : std::uint8_t {
  English,       ///< lucene_english_words: stemmed, without stop words
  Alphanumeric,  ///< alphanumeric_words
};
inline const std::vector<std::string> kIndexWords{"english", "alphanumeric"};

Analyzer analyzer_of(IndexWords words);

}  // namespace carnot
