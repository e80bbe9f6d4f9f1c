#include "carnot/view/page.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/view/chart/page.h"
#include "carnot/view/lists.h"

namespace carnot {

// Style and script, put into the library when it is configured (CMakeLists.txt).
extern const std::string_view kViewStyle, kViewScript;

namespace {

constexpr std::size_t kPartBytes = std::size_t{1} << 20;

/// Signals that the page shows.
constexpr std::array kShown = {Column::EntropyRollout, Column::LogProbRollout,   Column::LogProbOld,
                               Column::LogProbCurrent, Column::LogProbReference, Column::Value,
                               Column::AdvantageOracle};

template <class Value>
void add_unless(OrderedJson& to, const char* name, const Value& value, const Value& usual) {
  if (value != usual) to[name] = value;
}

/// Whether the old policy's log-probabilities are those of the rollout, as without a recomputation.
bool repeats_rollout(const Columns& columns, int turn) {
  if (turn >= columns.num_turns(Column::LogProbRollout)) return false;
  const auto alike = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  return std::ranges::equal(columns.turn(Column::LogProbOld, turn), columns.turn(Column::LogProbRollout, turn), alike);
}

void add_signal(OrderedJson& json, std::string_view name, const Turn& turn, const std::vector<double>& all) {
  if (all.size() != turn.tokens.size()) return;
  std::vector<OrderedJson> values;
  for (int t = turn.sampled_begin; t < turn.sampled_end; ++t)
    values.push_back(rounded(all[static_cast<std::size_t>(t)]));
  add_list(json, name, values);
}

/// `after`: the same tree under later weights, or null.
OrderedJson turn_json(const Tree& tree, const Tree* after, int number, const Tokenizer* tokenizer) {
  const Turn& turn = tree.turns[static_cast<std::size_t>(number)];
  OrderedJson json{
      {"parent", turn.parent}, {"tokens", turn.tokens}, {"sampled", {turn.sampled_begin, turn.sampled_end}}};
  for (const Span& span : turn.spans) json["spans"].push_back({static_cast<int>(span.kind), span.begin, span.end});
  if (turn.context == Context::Fresh) json["fresh"] = true;
  add_unless(json, "reward", turn.reward, 0.0);
  add_unless(json, "penalty", turn.penalty, 0.0);
  add_unless(json, "valid_action", turn.valid_action, true);
  if (turn.info_gain) json["info_gain"] = rounded(*turn.info_gain);
  if (turn.turn_entropy) json["turn_entropy"] = rounded(*turn.turn_entropy);
  add_unless(json, "tool", turn.tool, std::string());
  add_unless(json, "status", turn.status, std::string());
  if (turn.latency_ms > 0) json["latency_ms"] = rounded(turn.latency_ms);
  add_unless(json, "policy_version", turn.policy_version, 0);
  if (tokenizer != nullptr) {
    const std::vector<std::string> texts = token_texts(turn.tokens, *tokenizer);
    for (std::size_t t = 0; t < texts.size(); ++t)
      if (!texts[t].empty() && !is_text(*tokenizer, turn.tokens[t])) json["texts"][std::to_string(t)] = texts[t];
  }
  for (const Column column : kShown) {
    if (number >= tree.columns.num_turns(column)) continue;
    if (column == Column::LogProbOld && repeats_rollout(tree.columns, number)) continue;
    add_signal(json, name_of(column), turn, tree.columns.turn(column, number));
  }
  if (after != nullptr && number < after->columns.num_turns(Column::LogProbOld))
    add_signal(json, "logp_after", turn, after->columns.turn(Column::LogProbOld, number));
  return json;
}

OrderedJson leaf_json(const Trajectory& trajectory, std::span<const ViewedMethod> methods, std::size_t number) {
  const Leaf& leaf = trajectory.leaf();
  OrderedJson json{{"turn", leaf.turn},
                   {"id", leaf.trajectory_id},
                   {"outcome", name_of(leaf.outcome)},
                   {"score", rounded(leaf.score)}};
  add_unless(json, "parent", leaf.parent, -1);
  add_unless(json, "branch_turn", leaf.branch_turn, -1);
  add_unless(json, "success", leaf.success, false);
  add_unless(json, "dropped", leaf.dropped, false);
  for (const auto& [name, value] : leaf.measures) json["measures"][name] = rounded(value);
  if (leaf.answer) json["answer"] = *leaf.answer;
  for (const ViewedMethod& method : methods) json["credit"].push_back(credit_json(method, number, trajectory));
  return json;
}

OrderedJson group_json(const ViewedGroup& viewed, const Tokenizer* tokenizer) {
  const Group& group = *viewed.group;
  OrderedJson json{{"step", viewed.step}, {"uid", group.uid}};
  if (!group.ground_truth.empty()) json["truth"] = group.ground_truth;
  if (!group.info.empty()) json["info"] = group.info;
  OrderedJson trees = OrderedJson::array();
  for (std::size_t t = 0; t < group.trees.size(); ++t) {
    const Tree& tree = group.trees[t];
    const Tree* after = viewed.after ? &viewed.after->trees[t] : nullptr;
    OrderedJson turns = OrderedJson::array();
    for (std::size_t turn = 0; turn < tree.turns.size(); ++turn)
      turns.push_back(turn_json(tree, after, static_cast<int>(turn), tokenizer));
    trees.push_back({{"turns", std::move(turns)}, {"leaves", OrderedJson::array()}});
  }
  const std::vector<Trajectory> all = trajectories(std::span(&group, 1));
  for (std::size_t i = 0; i < all.size(); ++i)
    trees[static_cast<std::size_t>(all[i].tree_index)]["leaves"].push_back(
        leaf_json(all[i], viewed.methods, viewed.first + i));
  json["trees"] = std::move(trees);
  return json;
}

OrderedJson method_json(const MethodHead& method) {
  OrderedJson json{{"name", method.name}};
  for (const auto& [key, value] : method.objective) json["objective"][key] = value;
  for (const auto& [key, value] : method.numbers) json["numbers"].push_back({key, value});
  if (!method.missing.empty()) json["missing"] = method.missing;
  return json;
}

}  // namespace

bool is_text(const Tokenizer& tokenizer, TokenId id) {
  const std::string_view bytes = tokenizer.bytes_of(id);
  return valid_prefix(bytes) == bytes.size();
}

std::vector<std::string> token_texts(std::span<const TokenId> tokens, const Tokenizer& tokenizer) {
  std::vector<std::string> texts(tokens.size());
  for (std::size_t i = 0; i < tokens.size();) {
    std::string bytes(tokenizer.bytes_of(tokens[i]));
    std::size_t next = i + 1;
    if (!is_text(tokenizer, tokens[i]))
      for (; next < tokens.size() && !is_text(tokenizer, tokens[next]); ++next)
        bytes += tokenizer.bytes_of(tokens[next]);
    texts[i] = with_replacement_characters(bytes);
    i = next;
  }
  return texts;
}

bool Page::add(const ViewedGroup& viewed, std::size_t bytes) {
  const std::string text = json_line(group_json(viewed, tokenizer_));
  if (bytes_ + text.size() + 2 > bytes) return false;
  bytes_ += text.size() + 2;
  if (parts_.empty() || parts_.back().size() + text.size() > kPartBytes) parts_.emplace_back();
  parts_.back() += (parts_.back().empty() ? "" : ",\n") + text;
  for (const Tree& tree : viewed.group->trees)
    for (const Turn& turn : tree.turns) used_.insert(turn.tokens.begin(), turn.tokens.end());
  return true;
}

std::string Page::data(const PageHead& head) const { return data_with(head, join(parts_, ",\n"), 0); }

std::string Page::html(const PageHead& head, bool served) const {
  std::vector<std::string> later;
  for (std::size_t i = 1; i < parts_.size(); ++i) later.push_back("[" + parts_[i] + "]");
  return html_page({.style = kViewStyle,
                    .data_id = "data",
                    .data = data_with(head, parts_.empty() ? "" : parts_.front(), later.size()),
                    .script = kViewScript,
                    .served = served,
                    .more = later});
}

std::string Page::data_with(const PageHead& head, const std::string& groups, std::size_t later) const {
  OrderedJson facts = OrderedJson::array(), methods = OrderedJson::array(), vocabulary;
  for (const MethodHead& method : head.methods) methods.push_back(method_json(method));
  for (const auto& [name, value] : head.facts) facts.push_back({name, value});
  OrderedJson after = OrderedJson::object();
  for (const auto& [step, checkpoint] : head.after) after[std::to_string(step)] = checkpoint;
  if (tokenizer_ != nullptr) {
    vocabulary = OrderedJson::object();
    for (const TokenId id : used_)
      if (is_text(*tokenizer_, id)) vocabulary[std::to_string(id)] = std::string(tokenizer_->bytes_of(id));
  }
  std::string data = json_line(OrderedJson{{"title", head.title},
                                           {"facts", facts},
                                           {"notes", head.notes},
                                           {"methods", methods},
                                           {"steps", head.steps},
                                           {"curves", head.curves},
                                           {"after", after},
                                           {"vocabulary", vocabulary},
                                           {"later", later}});
  data.back() = ',';
  return data + "\n\"groups\": [\n" + groups + "\n]}\n";
}

}  // namespace carnot
