#include "recorded_cases.h"

#include <gtest/gtest.h>

#include <map>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "testing/paths.h"

namespace carnot::testing {
namespace {

/// Numbers names in the order they first appear.
class Numbering {
 public:
  std::size_t of(const std::string& name) { return numbers_.try_emplace(name, numbers_.size()).first->second; }

 private:
  std::map<std::string, std::size_t> numbers_{};
};

template <class T>
T& grown(std::vector<T>& items, std::size_t index) {
  if (items.size() <= index) items.resize(index + 1);
  return items[index];
}

void set_column(Tree& tree, Column column, int turn, std::size_t offset, std::size_t size, const Json& token,
                const char* field) {
  if (token.contains(field))
    tree.columns.edit(column, turn, static_cast<int>(size))[offset] = token[field].get<double>();
}

void add_prompt(Turn& turn, int tokens) {
  turn.sampled_begin = turn.sampled_end = tokens;
  extend_spans(turn.spans, SpanKind::Prompt, tokens);
}

/// Appends the recorded tokens as a chain of turns after a prompt; returns the last turn's index.
int add_chain(Tree& tree, const Json& recorded, int prompt_tokens) {
  const auto gains = recorded.value("ig", Json::array());
  int parent = -1;
  std::map<int, std::vector<Json>> turns;
  for (const Json& token : recorded["tokens"]) turns[token["turn"]].push_back(token);
  for (const auto& [k, tokens] : turns) {
    const int prompt = parent < 0 ? prompt_tokens : 0;
    const std::size_t size = tokens.size() + static_cast<std::size_t>(prompt);
    Turn turn{.parent = parent};
    add_prompt(turn, prompt);
    for (const Json& token : tokens) turn.sampled_end += token["sampled"].get<bool>() ? 1 : 0;
    turn.tokens.assign(size, 0);
    extend_spans(turn.spans, SpanKind::Action, turn.num_sampled());
    extend_spans(turn.spans, SpanKind::Observation, static_cast<int>(size) - turn.sampled_end);
    const auto gain = static_cast<std::size_t>(k);
    if (gain < gains.size() && !gains[gain].is_null()) turn.info_gain = gains[gain].get<double>();
    parent = static_cast<int>(tree.turns.size());
    tree.turns.push_back(turn);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const std::size_t at = t + static_cast<std::size_t>(prompt);
      set_column(tree, Column::Reward, parent, at, size, tokens[t], "reward");
      set_column(tree, Column::Value, parent, at, size, tokens[t], "value");
    }
  }
  return parent;
}

}  // namespace

std::vector<Json> recorded_cases(const std::string& name) {
  const std::string path = recorded_path("credit/") + name + ".jsonl.xz";
  const Result<std::string> text = read_maybe_compressed(path);
  CARNOT_CHECK(text.ok(), text.error().message);
  std::vector<Json> cases;
  for (std::string_view line : split_lines(*text))
    if (!line.empty()) cases.push_back(Json::parse(line));
  return cases;
}

void for_recorded(const std::string& file, const std::string& rule, int count,
                  const std::function<void(const Json&)>& check) {
  int seen = 0;
  for (const Json& one_case : recorded_cases(file)) {
    if (one_case["rule"] != rule) continue;
    SCOPED_TRACE(one_case["id"].get<std::string>());
    check(one_case);
    ++seen;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_EQ(seen, count) << "cases of " << rule << " in " << file;
}

RecordedGroups::RecordedGroups(const Json& one_case, int prompt) : prompt_tokens(prompt) {
  struct At {
    std::size_t group, tree, leaf;
  };
  std::vector<At> places;
  Numbering group_numbers;
  std::map<std::size_t, Numbering> tree_numbers;
  for (std::size_t i = 0; i < one_case["trajectories"].size(); ++i) {
    const Json& recorded = one_case["trajectories"][i];
    const std::size_t g = group_numbers.of(recorded["group"]);
    const std::string tree_name = recorded.value("tree", "tree " + std::to_string(i));
    const std::size_t t = tree_numbers[g].of(tree_name);
    Tree& tree = grown(grown(groups, g).trees, t);
    const bool dense = recorded["tokens"][0].contains("reward");
    tree.leaves.push_back(
        {.turn = add_chain(tree, recorded, prompt), .score = dense ? 0 : recorded.value("reward", 0.0)});
    places.push_back({.group = g, .tree = t, .leaf = tree.leaves.size() - 1});
  }
  all = trajectories(groups);
  for (const At& at : places)
    for (std::size_t n = 0; n < all.size(); ++n)
      if (all[n].group_index == static_cast<int>(at.group) && all[n].tree_index == static_cast<int>(at.tree) &&
          all[n].leaf_index == static_cast<int>(at.leaf))
        number.push_back(n);
}

RecordedRows::RecordedRows(const Json& one_case, int prompt_tokens) {
  Numbering group_numbers, trajectory_numbers;
  struct At {
    std::size_t group, tree;
    int turn;
  };
  std::vector<At> places;
  std::map<std::size_t, Numbering> tree_numbers;
  const Json& rows = one_case["rows"];
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Json& row = rows[r];
    const bool duplicate = row.value("duplicate", false);
    const double penalty = row["invalid"] ? -one_case["options"]["invalid_penalty"].get<double>() : 0;
    const std::size_t g = group_numbers.of(row["group"]);
    const std::size_t t = tree_numbers[g].of(duplicate ? "row " + std::to_string(r) : row["traj"].get<std::string>());
    Tree& tree = grown(grown(groups, g).trees, t);
    Turn turn{.parent = static_cast<int>(tree.turns.size()) - 1, .context = Context::Fresh};
    add_prompt(turn, prompt_tokens);
    turn.sampled_end += row["n_tokens"].get<int>();
    turn.tokens.assign(turn.sampled_end, 0);
    extend_spans(turn.spans, SpanKind::Action, turn.num_sampled());
    turn.reward = duplicate ? one_case["expected"]["step_return"][r].get<double>() - penalty : row.value("reward", 0.0);
    turn.penalty = penalty;
    turn.anchor = row.value("anchor", "");
    tree.turns.push_back(turn);
    tree.leaves = {{.turn = turn.parent + 1, .score = row["episode_reward"].get<double>()}};
    places.push_back({.group = g, .tree = t, .turn = turn.parent + 1});
  }
  all = trajectories(groups);
  for (const At& at : places)
    for (std::size_t n = 0; n < all.size(); ++n)
      if (all[n].group_index == static_cast<int>(at.group) && all[n].tree_index == static_cast<int>(at.tree))
        place.push_back({.trajectory = n, .turn = at.turn});
}

void expect_close(double actual, double expected, const std::string& where) {
  EXPECT_NEAR(actual, expected, 1e-9 * (1 + std::abs(expected))) << where;
}

void expect_tokens(const Json& expected, const RecordedGroups& built, const CreditTable& table,
                   std::vector<double> Credit::* column) {
  ASSERT_EQ(expected.size(), built.number.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::vector<double>& actual = table[built.number[i]].*column;
    ASSERT_EQ(expected[i].size() + built.prompt_tokens, actual.size());
    const std::vector<bool> sampled = built.all[built.number[i]].sampled();
    for (std::size_t t = 0; t < expected[i].size(); ++t)
      if (!expected[i][t].is_null() && sampled[t + built.prompt_tokens])
        expect_close(actual[t + built.prompt_tokens], expected[i][t],
                     "trajectory " + std::to_string(i) + " token " + std::to_string(t));
  }
}

void expect_rows(const Json& expected, const RecordedRows& built, const CreditTable& table) {
  ASSERT_EQ(expected.size(), built.place.size());
  for (std::size_t r = 0; r < expected.size(); ++r) {
    const auto& [trajectory, turn] = built.place[r];
    const auto first = static_cast<std::size_t>(built.all[trajectory].sampled_begin(turn));
    expect_close(table[trajectory].advantage[first], expected[r], "row " + std::to_string(r));
  }
}

}  // namespace carnot::testing
