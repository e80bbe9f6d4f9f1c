// gguf/scored_merges.h -- the merges of a SentencePiece BPE vocabulary, which stores scores instead of merges.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

struct ScoredToken {
  std::string_view text{};
  double score = 0;
};

using MergeParts = std::pair<std::string_view, std::string_view>;

/// Every way to put a token together from two others, in the order in which a tokenizer.json lists merges: by falling
/// score of the result, then as transformers sorts them. An error where that is more than base/limits.h allows.
Result<std::vector<MergeParts>> merges_of_scores(std::span<const ScoredToken> tokens);

}  // namespace carnot
