// retrieval/bm25/index_search.h -- finds the best passages of a mapped index.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "carnot/retrieval/bm25/bm25.h"
#include "carnot/retrieval/bm25/index_mapping.h"

namespace carnot {

/// The `k` best passages for the words of a query, best first; equal scores in order of passage. Throws DamagedIndex.
std::vector<SearchHit> search_index(const IndexMapping& index, std::span<const std::string> words, int k);

}  // namespace carnot
