#include "carnot/core/gguf/scored_merges.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <unordered_map>

#include "carnot/core/base/limits.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

struct Candidate {
  MergeParts parts{};
  std::size_t left = 0, right = 0;  // tokens
  double score = 0;
};

/// Ways to cut one token, by the order of their parts in the vocabulary.
std::vector<Candidate> cuts_of(const ScoredToken& token,
                               const std::unordered_map<std::string_view, std::size_t>& places) {
  std::vector<Candidate> cuts;
  for (std::size_t at = 1; at < token.text.size(); ++at) {
    if (continues_character(token.text[at])) continue;
    const auto left = places.find(token.text.substr(0, at)), right = places.find(token.text.substr(at));
    if (left != places.end() && right != places.end())
      cuts.push_back({{left->first, right->first}, left->second, right->second, token.score});
  }
  std::sort(cuts.begin(), cuts.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.left, a.right) < std::tie(b.left, b.right);
  });
  return cuts;
}

bool comes_before(const Candidate& a, const Candidate& b) {
  const auto rank = [](const Candidate& it) {
    return std::tuple(it.score, count_characters(it.parts.first), count_characters(it.parts.second));
  };
  return rank(a) > rank(b);
}

}  // namespace

Result<std::vector<MergeParts>> merges_of_scores(std::span<const ScoredToken> tokens) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < tokens.size(); ++i) places.emplace(tokens[i].text, i);
  std::vector<Candidate> candidates;
  for (const ScoredToken& token : tokens) {
    if (token.text.size() > kMaxScoredTokenBytes)
      return Error{"a token of " + std::to_string(token.text.size()) + " bytes; expected at most " +
                   std::to_string(kMaxScoredTokenBytes)};
    const std::vector<Candidate> cuts = cuts_of(token, places);
    candidates.insert(candidates.end(), cuts.begin(), cuts.end());
    if (candidates.size() > static_cast<std::size_t>(kMaxTokenId))
      return Error{"its tokens can be put together in more than " + std::to_string(kMaxTokenId) + " ways"};
  }
  std::stable_sort(candidates.begin(), candidates.end(), comes_before);
  std::vector<MergeParts> merges;
  merges.reserve(candidates.size());
  for (const Candidate& candidate : candidates) merges.push_back(candidate.parts);
  return merges;
}

}  // namespace carnot
