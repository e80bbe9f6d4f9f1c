#include "reference/gain_outcome.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>
#include <vector>

namespace carnot::reference {
namespace {

int occurrences(const std::string& text, const std::string& what) {
  int count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

std::set<std::string> words_of(std::string text) {
  for (char& c : text)
    c = std::ispunct(static_cast<unsigned char>(c)) ? ' '
                                                    : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::istringstream in(text);
  std::set<std::string> words;
  for (std::string word; in >> word;) words.insert(word);
  return words;
}

double f1(const std::set<std::string>& a, const std::set<std::string>& b) {
  double common = 0;
  for (const auto& word : a) common += b.contains(word) ? 1 : 0;
  if (common == 0) return 0;
  const double precision = common / static_cast<double>(a.size());
  const double recall = common / static_cast<double>(b.size());
  return 2 * precision * recall / (precision + recall);
}

}  // namespace

double gain_outcome(const std::string& solution, const std::string& ground_truth) {
  for (const std::string tag : {"think", "tool_call", "code", "answer"})
    if (occurrences(solution, "<" + tag + ">") != occurrences(solution, "</" + tag + ">")) return -2;
  const auto begin = solution.find("<answer>");
  if (begin == std::string::npos) return -2;
  const auto end = solution.find("</answer>", begin);
  const auto answer = words_of(solution.substr(begin + 8, end - begin - 8));

  const std::string split = "<|answer_split|>";
  double best = 0;
  for (std::size_t from = 0; from <= ground_truth.size();) {
    const auto to = std::min(ground_truth.find(split, from), ground_truth.size());
    best = std::max(best, f1(answer, words_of(ground_truth.substr(from, to - from))));
    from = to + split.size();
  }
  return best;
}

}  // namespace carnot::reference
