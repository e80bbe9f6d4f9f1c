#include "testing/random_groups.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace carnot::testing {
namespace {

constexpr const char* kStatuses[] = {"ok", "empty", "timeout"};
constexpr Outcome kPolicyOutcomes[] = {Outcome::Finished, Outcome::OutOfTurns, Outcome::OutOfTokens,
                                       Outcome::Unparsable, Outcome::ToolFailed};

/// What all turns of a group share.
struct GroupStyle {
  Context context = Context::Growing;
  bool info_gain = false;
  bool zero_variance = false;
  double score = 0;
};

/// Builds one group; holds what its parts share.
class GroupBuilder {
 public:
  GroupBuilder(RandomStream& random, const RandomGroupOptions& options) : random_(random), options_(options) {}

  Group build(int index) {
    Group group{.uid = "task-" + std::to_string(index),
                .task_index = static_cast<std::int64_t>(random_.below(1000)),
                .seed = random_.bits(),
                .step = static_cast<std::int64_t>(random_.below(50))};
    if (random_.chance(0.5)) group.ground_truth = {"answer " + std::to_string(random_.below(10)), "another"};
    if (random_.chance(0.5)) group.info = {{"hops", std::to_string(1 + random_.below(3))}};
    style_ = {.context = random_.chance(options_.fresh_share) ? Context::Fresh : Context::Growing,
              .info_gain = random_.chance(0.5),
              .zero_variance = random_.chance(options_.zero_variance_share),
              .score = random_.chance(0.5) ? 1.0 : 0.0};
    if (style_.info_gain) group.query_baseline = random_.uniform();
    const int members = 1 + static_cast<int>(random_.below(static_cast<std::uint64_t>(options_.max_members)));
    const bool dropped = random_.chance(options_.dropped_share);
    for (int sibling = 0; sibling < members; ++sibling) {
      const bool branches = !group.trees.empty() && random_.chance(options_.branch_share);
      if (!branches) group.trees.emplace_back();
      Tree& tree = branches ? random_.pick(group.trees) : group.trees.back();
      add_member(tree, sibling, group.uid);
      tree.leaves.back().dropped = dropped;
    }
    for (Tree& tree : group.trees) add_columns(tree);
    return group;
  }

 private:
  int up_to(int bound) { return static_cast<int>(random_.below(static_cast<std::uint64_t>(bound) + 1)); }

  void add_tokens(Turn& turn, SpanKind kind, int count) {
    for (int i = 0; i < count; ++i)
      turn.tokens.push_back(static_cast<TokenId>(random_.below(static_cast<std::uint64_t>(options_.vocabulary))));
    extend_spans(turn.spans, kind, count);
  }

  Turn random_turn(int parent) {
    Turn turn{.parent = parent, .context = style_.context};
    const bool has_prompt = parent < 0 || style_.context == Context::Fresh;
    add_tokens(turn, SpanKind::Template, up_to(2));
    if (has_prompt) add_tokens(turn, SpanKind::Prompt, 1 + up_to(options_.max_tokens));
    turn.sampled_begin = static_cast<int>(turn.tokens.size());
    if (!random_.chance(options_.unsampled_share)) {
      add_tokens(turn, SpanKind::Think, up_to(options_.max_tokens));
      add_tokens(turn, SpanKind::Action, 1 + up_to(options_.max_tokens - 1));
      add_tokens(turn, SpanKind::Think, up_to(1));
    }
    turn.sampled_end = static_cast<int>(turn.tokens.size());
    add_tokens(turn, SpanKind::Observation, up_to(options_.max_tokens));
    if (turn.tokens.empty()) add_tokens(turn, SpanKind::Template, 1);
    fill_facts(turn);
    return turn;
  }

  void fill_facts(Turn& turn) {
    if (!style_.zero_variance && random_.chance(0.3)) turn.reward = random_.normal();
    turn.valid_action = random_.chance(0.8);
    turn.penalty = turn.valid_action || style_.zero_variance ? 0.0 : -0.1;
    if (style_.info_gain && random_.chance(0.9)) turn.info_gain = 2 * random_.uniform() - 1;
    if (random_.chance(0.5)) turn.turn_entropy = random_.uniform();
    if (options_.anchors > 0) turn.anchor = "state " + std::to_string(up_to(options_.anchors - 1));
    if (random_.chance(0.5)) {
      turn.tool = "search";
      turn.status = kStatuses[random_.below(3)];
      turn.latency_ms = 100 * random_.uniform();
    }
    turn.policy_version = up_to(3);
  }

  void add_member(Tree& tree, int sibling, const std::string& uid) {
    Leaf leaf{.sibling = sibling, .trajectory_id = uid + "/" + std::to_string(sibling)};
    int shared = 0;
    int turn = -1;
    if (!tree.leaves.empty()) {
      leaf.parent = up_to(static_cast<int>(tree.leaves.size()) - 1);
      const std::vector<int> parent_path = path(tree, leaf.parent);
      shared = up_to(static_cast<int>(parent_path.size()) - 1);
      if (shared > 0) turn = parent_path[static_cast<std::size_t>(shared) - 1];
      leaf.branch_turn = shared;
    }
    const int more = 1 + up_to(std::max(0, options_.max_turns - shared - 1));
    for (int k = 0; k < more; ++k) {
      tree.turns.push_back(random_turn(turn));
      turn = static_cast<int>(tree.turns.size()) - 1;
    }
    leaf.turn = turn;
    tree.turns.back().reward = style_.zero_variance ? style_.score : (random_.chance(0.5) ? 1.0 : random_.normal());
    for (int t = turn; t >= 0; t = tree.turns[t].parent) leaf.score += tree.turns[t].reward;
    leaf.success = leaf.score > 0.5;
    leaf.outcome = random_.chance(options_.invalid_share) ? Outcome::InfraFailed : kPolicyOutcomes[random_.below(5)];
    if (sibling % 4 != 0) leaf.answer = "answer " + std::to_string(sibling % 3);
    if (random_.chance(0.5)) leaf.measures = {{"exact_match", leaf.success ? 1.0 : 0.0}, {"format", random_.uniform()}};
    tree.leaves.push_back(leaf);
  }

  double value_for(Column column) {
    switch (column) {
      case Column::LogProbRollout:
      case Column::LogProbOld:
      case Column::LogProbCurrent:
      case Column::LogProbReference: return std::log1p(-random_.uniform());
      case Column::EntropyRollout:
      case Column::EntropyOld:
      case Column::EntropyReference: return 3 * random_.uniform();
      default: return random_.normal();
    }
  }

  void add_columns(Tree& tree) {
    for (const Column column : options_.columns)
      for (std::size_t t = 0; t < tree.turns.size(); ++t) {
        const Turn& turn = tree.turns[t];
        auto& values = tree.columns.edit(column, static_cast<int>(t), static_cast<int>(turn.tokens.size()));
        for (int i = turn.sampled_begin; i < turn.sampled_end; ++i) values[i] = value_for(column);
      }
  }

  RandomStream& random_;
  const RandomGroupOptions& options_;
  GroupStyle style_{};
};

}  // namespace

std::vector<Group> random_groups(RandomStream& random, const RandomGroupOptions& options) {
  std::vector<Group> groups;
  for (int g = 0; g < options.groups; ++g) groups.push_back(GroupBuilder(random, options).build(g));
  return groups;
}

CreditTable random_credit(RandomStream& random, const std::vector<Group>& groups) {
  const std::vector<Trajectory> all = trajectories(groups);
  CreditTable table = fresh_credit(all);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (int k = 0; k < all[i].num_turns(); ++k)
      for (int t = all[i].sampled_begin(k); t < all[i].sampled_end(k); ++t) {
        const auto token = static_cast<std::size_t>(t);
        table[i].advantage[token] = random.normal();
        table[i].weight[token] = random.uniform();
        table[i].clip_scale[token] = 1 + random.uniform();
        table[i].value_target[token] = random.normal();
      }
  return table;
}

std::vector<Column> all_columns() {
  std::vector<Column> all;
  for (int c = 0; c < kNumColumns; ++c) all.push_back(static_cast<Column>(c));
  return all;
}

}  // namespace carnot::testing
