#include "reference/token_set_ratio.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <vector>

namespace carnot::reference {
namespace {

std::set<std::string> word_set(const std::string& text) {
  std::istringstream in(text);
  std::set<std::string> words;
  for (std::string word; in >> word;) words.insert(word);
  return words;
}

std::size_t longest_common_subsequence(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j)
      table[i][j] = a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1 : std::max(table[i - 1][j], table[i][j - 1]);
  return table[a.size()][b.size()];
}

double ratio(const std::string& a, const std::string& b) {
  if (a.empty() && b.empty()) return 100;
  const auto common = static_cast<double>(longest_common_subsequence(a, b));
  return 100.0 * 2.0 * common / static_cast<double>(a.size() + b.size());
}

}  // namespace

int token_set_ratio(const std::string& a, const std::string& b) {
  const auto words_a = word_set(a), words_b = word_set(b);
  if (words_a.empty() || words_b.empty()) return 0;
  std::string common, with_a, with_b;
  const auto add = [](std::string& text, const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  for (const auto& word : words_a)
    if (words_b.contains(word)) add(common, word);
  with_a = with_b = common;
  for (const auto& word : words_a)
    if (!words_b.contains(word)) add(with_a, word);
  for (const auto& word : words_b)
    if (!words_a.contains(word)) add(with_b, word);
  double best = ratio(with_a, with_b);
  if (!common.empty()) best = std::max({best, ratio(common, with_a), ratio(common, with_b)});
  return static_cast<int>(std::nearbyint(best));
}

}  // namespace carnot::reference
