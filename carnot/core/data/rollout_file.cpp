#include "carnot/core/data/rollout_file.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "carnot/core/base/file.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/data/rollout_row.h"

namespace carnot {
namespace {

/// What the assembler remembers about a trajectory in addition to its leaf.
struct Member {
  int line = 0;
  Credit credit{};
};

struct OpenTree {
  std::optional<std::int64_t> number{};  ///< from the rows; empty for a chain without a number
  std::vector<Member> members{};
};

/// A group under construction, and the places of its trajectories.
struct OpenGroup {
  struct Seat {
    int tree = 0;
    int leaf = 0;
  };
  std::vector<OpenTree> trees{};
  std::map<std::string, Seat> seats{};  ///< by traj_id
};

bool same_turn(const Turn& a, const Turn& b) {
  return a.context == b.context && a.tokens == b.tokens && a.sampled_begin == b.sampled_begin &&
         a.sampled_end == b.sampled_end && a.reward == b.reward && a.penalty == b.penalty;
}

/// Reassembles trees, row by row.
class Assembler {
 public:
  /// Returns why the row cannot be added, or an empty string.
  std::string add(RolloutRow row) {
    const auto [known, is_new] =
        group_index_.try_emplace({row.group.step, row.group.uid}, static_cast<int>(file_.groups.size()));
    if (is_new) {
      file_.groups.push_back(std::move(row.group));
      open_.emplace_back();
    }
    Group& group = file_.groups[known->second];
    OpenGroup& open = open_[known->second];
    if (open.seats.count(row.leaf.trajectory_id) > 0)
      return "traj_id: \"" + row.leaf.trajectory_id + "\" appears twice in this group";

    OpenGroup::Seat parent{-1, -1};
    if (row.parent) {
      const auto found = open.seats.find(*row.parent);
      if (found == open.seats.end())
        return "parent: no earlier line of this group has the traj_id \"" + *row.parent + "\"";
      parent = found->second;
    }
    const int tree = tree_of(row, parent.tree, group, open);
    const std::string problem = add_to_tree(row, parent.leaf, group.trees[tree]);
    if (!problem.empty()) return problem;
    OpenTree& members = open.trees[tree];
    open.seats[row.leaf.trajectory_id] = {tree, static_cast<int>(members.members.size())};
    members.members.push_back({row.line, std::move(row.credit)});
    has_credit_ = has_credit_ || row.has_credit;
    return "";
  }

  RolloutFile finish() {
    for (std::size_t g = 0; g < open_.size(); ++g)
      for (std::size_t t = 0; t < open_[g].trees.size(); ++t) {
        complete_columns(file_.groups[g].trees[t]);
        for (Member& member : open_[g].trees[t].members) {
          file_.line_of_row.push_back(member.line);
          if (has_credit_) file_.credit.push_back(std::move(member.credit));
        }
      }
    return std::move(file_);
  }

 private:
  /// The parent's tree, else the tree with the row's number, else a new one.
  static int tree_of(const RolloutRow& row, int parent_tree, Group& group, OpenGroup& open) {
    if (parent_tree >= 0) return parent_tree;
    if (row.tree)
      for (std::size_t t = 0; t < open.trees.size(); ++t)
        if (open.trees[t].number == row.tree) return static_cast<int>(t);
    group.trees.emplace_back();
    open.trees.push_back({.number = row.tree});
    return static_cast<int>(group.trees.size()) - 1;
  }

  static std::string add_to_tree(RolloutRow& row, int parent_leaf, Tree& tree) {
    std::vector<int> shared;
    if (parent_leaf >= 0) {
      const int branch_turn = row.leaf.branch_turn;
      shared = path(tree, parent_leaf);
      const std::size_t most = std::min(shared.size(), row.turns.size() - 1);
      if (branch_turn < 0 || static_cast<std::size_t>(branch_turn) > most)
        return "branch_turn: expected at most " + std::to_string(most) + " turns shared with the parent, found " +
               std::to_string(branch_turn);
      shared.resize(branch_turn);
      for (std::size_t k = 0; k < shared.size(); ++k)
        if (!same_turn(tree.turns[shared[k]], row.turns[k]))
          return "turns[" + std::to_string(k) + "]: differs from the parent's, with which it is shared";
    } else {
      row.leaf.branch_turn = -1;
    }
    int last = shared.empty() ? -1 : shared.back();
    std::vector<int> turn_index = shared;
    for (std::size_t k = shared.size(); k < row.turns.size(); ++k) {
      row.turns[k].parent = last;
      last = static_cast<int>(tree.turns.size());
      turn_index.push_back(last);
      tree.turns.push_back(std::move(row.turns[k]));
    }
    row.leaf.turn = last;
    row.leaf.parent = parent_leaf;
    tree.leaves.push_back(row.leaf);
    for (const auto& [column, turns] : row.columns)
      for (std::size_t k = 0; k < turns.size(); ++k) fill(tree.columns, column, turn_index[k], turns[k]);
    return "";
  }

  /// Measurements of a shared turn can be in any of its rows; the first one counts.
  static void fill(Columns& columns, Column column, int turn, const std::vector<double>& values) {
    auto& stored = columns.edit(column, turn, static_cast<int>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      if (std::isnan(stored[i])) stored[i] = values[i];
  }

  /// Extends a column that occurs in some row to the whole tree.
  static void complete_columns(Tree& tree) {
    for (int c = 0; c < kNumColumns; ++c) {
      const auto column = static_cast<Column>(c);
      if (!tree.columns.has(column)) continue;
      for (std::size_t t = 0; t < tree.turns.size(); ++t)
        tree.columns.edit(column, static_cast<int>(t), static_cast<int>(tree.turns[t].tokens.size()));
    }
  }

  RolloutFile file_{};
  std::vector<OpenGroup> open_{};
  std::map<std::pair<std::int64_t, std::string>, int> group_index_{};
  bool has_credit_ = false;
};

}  // namespace

Result<RolloutFile> parse_rollout_rows(std::string_view text, const std::string& name) {
  Assembler assembler;
  std::vector<std::string> problems;
  const std::vector<std::string_view> lines = split_lines(text);
  for (std::size_t i = 0; i < lines.size() && problems.size() < kMaxProblems; ++i) {
    if (lines[i].find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = name + ":" + std::to_string(i + 1);
    auto row = parse_rollout_row(lines[i], where, problems);
    if (!row) continue;
    row->line = static_cast<int>(i) + 1;
    const std::string problem = assembler.add(std::move(*row));
    if (!problem.empty()) problems.push_back(where + ": " + problem);
  }
  if (problems.size() >= kMaxProblems) problems.push_back(name + ": stopped reading here");
  if (!problems.empty()) return join_errors(problems);
  return assembler.finish();
}

Result<RolloutFile> read_rollout_file(const std::filesystem::path& path) {
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_maybe_compressed(path));
  return parse_rollout_rows(text, path.string());
}

}  // namespace carnot
