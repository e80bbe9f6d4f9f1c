// reference/bm25.h -- BM25 by its definition: counts every document again for every query.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace carnot::reference {

/// (document, score) of the `k` best documents with a positive score, best first, ties by document. Words are given.
std::vector<std::pair<int, double>> bm25_top(const std::vector<std::vector<std::string>>& documents,
                                             const std::vector<std::string>& query, int k, double k1, double b);

/// The same in Lucene's arithmetic: a document's terms in single precision, their sum in double and rounded to single;
/// lengths rounded to one byte. `query` words count as often as they occur.
std::vector<std::pair<int, double>> lucene_bm25_top(const std::vector<std::vector<std::string>>& documents,
                                                    const std::vector<std::string>& query, int k, float k1, float b);

}  // namespace carnot::reference
