#include "carnot/core/base/nearest_word.h"

#include <algorithm>
#include <vector>

namespace carnot {

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<int> before(width), above(width), row(width);
  for (std::size_t j = 0; j < width; ++j) above[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j < width; ++j) {
      const int replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string nearest;
  int least = std::max(1, static_cast<int>(word.size()) / 2) + 1;
  for (const std::string& candidate : known) {
    const int distance = edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string unknown_word(std::string_view kind, std::string_view word, const std::vector<std::string>& known) {
  const std::string start = "there is no " + std::string(kind) + " '" + std::string(word) + "'; ";
  const std::string nearest = nearest_word(word, known);
  if (!nearest.empty()) return start + "did you mean '" + nearest + "'?";
  std::string all;
  for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
  return start + "there are: " + all;
}

}  // namespace carnot
