#include "reference/bm25.h"

#include <algorithm>
#include <cmath>

namespace carnot::reference {

std::vector<std::pair<int, double>> bm25_top(const std::vector<std::vector<std::string>>& documents,
                                             const std::vector<std::string>& query, int k, double k1, double b) {
  double mean_length = 0;
  for (const auto& document : documents)
    mean_length += static_cast<double>(document.size()) / static_cast<double>(documents.size());

  std::vector<std::pair<int, double>> scored;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    double score = 0;
    for (const std::string& word : query) {
      double holding = 0;
      for (const auto& document : documents) holding += std::count(document.begin(), document.end(), word) > 0;
      const double idf = std::log(1 + (static_cast<double>(documents.size()) - holding + 0.5) / (holding + 0.5));
      const double f = static_cast<double>(std::count(documents[i].begin(), documents[i].end(), word));
      if (f == 0) continue;
      score += idf * f / (f + k1 * (1 - b + b * static_cast<double>(documents[i].size()) / mean_length));
    }
    if (score > 0) scored.emplace_back(static_cast<int>(i), score);
  }
  std::stable_sort(scored.begin(), scored.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
  if (scored.size() > static_cast<std::size_t>(k)) scored.resize(k);
  return scored;
}

namespace {

// The largest number up to `length` that is below 24, or 24 and a number of at most four significant bits.
int one_byte_length(int length) {
  for (int candidate = length;; --candidate) {
    if (candidate < 24) return candidate;
    int bits = candidate - 24;
    while (bits >= 16 && bits % 2 == 0) bits /= 2;
    if (bits < 16) return candidate;
  }
}

float occurrences(const std::vector<std::string>& words, const std::string& word) {
  return static_cast<float>(std::count(words.begin(), words.end(), word));
}

}  // namespace

std::vector<std::pair<int, double>> lucene_bm25_top(const std::vector<std::vector<std::string>>& documents,
                                                    const std::vector<std::string>& query, int k, float k1, float b) {
  const auto size = static_cast<double>(documents.size());
  double words = 0;
  for (const auto& document : documents) words += static_cast<double>(document.size());
  const auto mean_length = static_cast<float>(words / size);
  std::vector<std::string> distinct;
  for (const std::string& word : query)
    if (std::count(distinct.begin(), distinct.end(), word) == 0) distinct.push_back(word);

  std::vector<std::pair<int, double>> scored;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const auto length = static_cast<float>(one_byte_length(static_cast<int>(documents[i].size())));
    const float inverse = 1.0f / (k1 * ((1.0f - b) + b * length / mean_length));
    double score = 0;
    for (const std::string& word : distinct) {
      double holding = 0;
      for (const auto& document : documents) holding += occurrences(document, word) > 0;
      const auto idf = static_cast<float>(std::log(1 + (size - holding + 0.5) / (holding + 0.5)));
      const float weight = occurrences(query, word) * idf, f = occurrences(documents[i], word);
      if (f > 0) score += weight - weight / (1.0f + f * inverse);
    }
    if (score > 0) scored.emplace_back(static_cast<int>(i), static_cast<float>(score));
  }
  std::stable_sort(scored.begin(), scored.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
  if (scored.size() > static_cast<std::size_t>(k)) scored.resize(k);
  return scored;
}

}  // namespace carnot::reference
