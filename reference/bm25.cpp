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

}  // namespace carnot::reference
