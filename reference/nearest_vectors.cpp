#include "reference/nearest_vectors.h"

#include <algorithm>

namespace carnot::reference {

std::vector<std::pair<int, double>> nearest_vectors(const std::vector<std::vector<float>>& rows,
                                                    const std::vector<float>& query, int k) {
  std::vector<std::pair<int, double>> all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < query.size(); ++j) sum += double{rows[i][j]} * double{query[j]};
    all.emplace_back(static_cast<int>(i), sum);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  all.resize(std::min(all.size(), static_cast<std::size_t>(k)));
  return all;
}

}  // namespace carnot::reference
