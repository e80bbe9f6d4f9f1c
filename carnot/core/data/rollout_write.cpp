#include <cmath>

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/data/rollout_row.h"

namespace carnot {
namespace {

template <class Value>
OrderedJson or_null(const std::optional<Value>& value) {
  return value ? OrderedJson(*value) : OrderedJson();
}

OrderedJson numbers(const std::vector<double>& values) {
  OrderedJson list = OrderedJson::array();
  for (const double value : values) list.push_back(std::isfinite(value) ? OrderedJson(value) : OrderedJson());
  return list;
}

OrderedJson turn_of(const Trajectory& trajectory, int k) {
  const Turn& turn = trajectory.turn(k);
  return {{"start", trajectory.turn_offsets[k]},
          {"end", trajectory.turn_offsets[static_cast<std::size_t>(k) + 1]},
          {"context", turn.context == Context::Fresh ? "fresh" : "growing"},
          {"reward", turn.reward},
          {"penalty", turn.penalty},
          {"valid_action", turn.valid_action},
          {"info_gain", or_null(turn.info_gain)},
          {"turn_entropy", or_null(turn.turn_entropy)},
          {"anchor", turn.anchor},
          {"tool", turn.tool},
          {"status", turn.status},
          {"latency_ms", turn.latency_ms},
          {"policy_version", turn.policy_version}};
}

/// The fields that identify the trajectory and say how it ended.
OrderedJson identity_of(const Trajectory& trajectory) {
  const Group& group = *trajectory.group;
  const Leaf& leaf = trajectory.leaf();
  OrderedJson parent;
  OrderedJson branch_turn;
  if (leaf.parent >= 0) {
    parent = trajectory.tree->leaves[leaf.parent].trajectory_id;
    branch_turn = leaf.branch_turn;
  }
  OrderedJson row = {{"version", kRolloutRowVersion},
                     {"step", group.step},
                     {"uid", group.uid},
                     {"traj_id", leaf.trajectory_id},
                     {"tree", trajectory.tree_index},
                     {"parent", parent},
                     {"branch_turn", branch_turn},
                     {"outcome", name_of(leaf.outcome)},
                     {"valid", leaf.valid()},
                     {"success", leaf.success},
                     {"score", leaf.score},
                     {"measures", leaf.measures},
                     {"gts", group.ground_truth},
                     {"info", group.info},
                     {"task_index", group.task_index},
                     {"seed", std::to_string(group.seed)},  // JSON readers round numbers beyond 2^53
                     {"sibling", leaf.sibling},
                     {"query_baseline", or_null(group.query_baseline)}};
  if (leaf.answer) row["answer"] = *leaf.answer;
  if (leaf.dropped) row["dropped"] = true;
  return row;
}

void add_tokens(OrderedJson& row, const Trajectory& trajectory, const std::vector<bool>& sampled,
                const Decode& decode) {
  const std::vector<TokenId> tokens = trajectory.tokens();
  const auto prompt_tokens =
      static_cast<std::size_t>(std::find(sampled.begin(), sampled.end(), true) - sampled.begin());
  const std::span<const TokenId> all(tokens);
  row["input"] = decode ? decode(all.first(prompt_tokens)) : "";
  row["output"] = decode ? decode(all.subspan(prompt_tokens)) : "";
  row["prompt_tokens"] = prompt_tokens;
  OrderedJson turns = OrderedJson::array();
  for (int k = 0; k < trajectory.num_turns(); ++k) turns.push_back(turn_of(trajectory, k));
  row["turns"] = std::move(turns);
  row["token_ids"] = tokens;
  OrderedJson mask = OrderedJson::array();
  for (const bool bit : sampled) mask.push_back(bit ? 1 : 0);
  row["loss_mask"] = std::move(mask);
  OrderedJson segments = OrderedJson::array();
  for (const SpanKind kind : trajectory.kinds()) segments.push_back(name_of(kind));
  row["segment"] = std::move(segments);
}

void add_columns(OrderedJson& row, const Trajectory& trajectory) {
  for (int c = 0; c < kNumColumns; ++c) {
    const auto column = static_cast<Column>(c);
    if (trajectory.tree->columns.has(column)) row[std::string(name_of(column))] = numbers(trajectory.column(column));
  }
}

void add_credit(OrderedJson& row, const Credit& credit, const std::vector<bool>& sampled) {
  const auto add = [&](const char* name, std::vector<double> values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!sampled[i]) values[i] = std::nan("");
    row[name] = numbers(values);
  };
  add("advantage", credit.advantage);
  add("weight", credit.weight);
  add("clip_scale", credit.clip_scale);
  add("value_target", credit.value_target);
}

}  // namespace

std::string rollout_rows(std::span<const Group> groups, const CreditTable& credit, const Decode& decode) {
  const std::vector<Trajectory> all = trajectories(groups);
  CARNOT_CHECK(credit.empty() || credit.size() == all.size(), "credit is numbered as the trajectories");
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<bool> sampled = all[i].sampled();
    OrderedJson row = identity_of(all[i]);
    add_tokens(row, all[i], sampled, decode);
    add_columns(row, all[i]);
    if (!credit.empty()) add_credit(row, credit[i], sampled);
    out += row.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
    out += '\n';
  }
  return out;
}

}  // namespace carnot
