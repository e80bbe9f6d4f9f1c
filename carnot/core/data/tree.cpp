#include "carnot/core/data/tree.h"

#include <algorithm>
#include <string>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

std::string span_problem(const Turn& turn) {
  int at = 0;
  for (const Span& span : turn.spans) {
    if (span.begin != at || span.end <= span.begin) return "spans have a gap, an overlap or an empty span";
    at = span.end;
  }
  return at == static_cast<int>(turn.tokens.size()) ? "" : "spans do not cover the tokens";
}

std::string turn_problem(const Tree& tree, int index) {
  const Turn& turn = tree.turns[index];
  if (turn.parent < -1 || turn.parent >= index) return "parent does not come before it";
  const bool ordered = 0 <= turn.sampled_begin && turn.sampled_begin <= turn.sampled_end &&
                       turn.sampled_end <= static_cast<int>(turn.tokens.size());
  if (!ordered) return "sampled range is outside its tokens";
  return span_problem(turn);
}

}  // namespace

std::vector<int> path(const Tree& tree, int leaf) {
  CARNOT_CHECK_LT(static_cast<std::size_t>(leaf), tree.leaves.size());
  std::vector<int> turns;
  for (int t = tree.leaves[leaf].turn; t >= 0; t = tree.turns[t].parent) turns.push_back(t);
  std::reverse(turns.begin(), turns.end());
  return turns;
}

std::int64_t num_tokens(const Tree& tree) {
  std::int64_t tokens = 0;
  for (const Turn& turn : tree.turns) tokens += static_cast<std::int64_t>(turn.tokens.size());
  return tokens;
}

double penalised_score(const Tree& tree, int leaf) {
  double sum = tree.leaves[leaf].score;
  for (int t : path(tree, leaf)) sum += tree.turns[t].penalty;
  return sum;
}

std::vector<std::string> violations(const Tree& tree) {
  std::vector<std::string> problems;
  for (std::size_t t = 0; t < tree.turns.size(); ++t) {
    const std::string problem = turn_problem(tree, static_cast<int>(t));
    if (!problem.empty()) problems.push_back("turn " + std::to_string(t) + ": " + problem);
  }
  for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
    const Leaf& leaf = tree.leaves[i];
    if (leaf.turn < 0 || leaf.turn >= static_cast<int>(tree.turns.size()))
      problems.push_back("leaf " + std::to_string(i) + ": ends on turn " + std::to_string(leaf.turn) + " of " +
                         std::to_string(tree.turns.size()));
    if (leaf.parent >= static_cast<int>(i))
      problems.push_back("leaf " + std::to_string(i) + ": branched off a leaf that comes after it");
  }
  for (int c = 0; c < kNumColumns; ++c) {
    const auto column = static_cast<Column>(c);
    if (!tree.columns.has(column)) continue;
    if (tree.columns.num_turns(column) != static_cast<int>(tree.turns.size())) {
      problems.push_back("column " + std::string(name_of(column)) + " holds " +
                         std::to_string(tree.columns.num_turns(column)) + " of " + std::to_string(tree.turns.size()) +
                         " turns");
      continue;
    }
    for (std::size_t t = 0; t < tree.turns.size(); ++t) {
      const std::size_t size = tree.columns.turn(column, static_cast<int>(t)).size();
      if (size != tree.turns[t].tokens.size())
        problems.push_back("turn " + std::to_string(t) + ": column " + std::string(name_of(column)) + " has " +
                           std::to_string(size) + " values for " + std::to_string(tree.turns[t].tokens.size()) +
                           " tokens");
    }
  }
  return problems;
}

}  // namespace carnot
