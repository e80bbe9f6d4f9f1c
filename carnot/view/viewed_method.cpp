#include "carnot/view/viewed_method.h"

#include <array>
#include <limits>

#include "carnot/view/lists.h"

namespace carnot {
namespace {

constexpr std::array<std::string_view, 4> kKinds = {"base", "shaping", "modulator", "weight"};  // RuleKind

/// Letters of clip states; '-' where the step did not train the token.
std::string letter_of(const std::string& clip_state) {
  if (clip_state.empty()) return "-";
  return clip_state == "limit" ? "m" : clip_state.substr(0, 1);
}

void add_states(OrderedJson& json, const Trajectory& trajectory, const TokenStates& states) {
  const std::vector<bool> sampled = trajectory.sampled();
  if (states.clip_state.size() != sampled.size()) return;
  add_sampled(json, "ratio", trajectory, states.ratio);
  add_sampled(json, "gradient", trajectory, states.gradient);
  add_sampled(json, "kl_gradient", trajectory, states.kl_gradient);
  add_sampled(json, "unit_share", trajectory, states.unit_share);
  add_sampled(json, "scaled_advantage", trajectory, states.scaled_advantage);
  std::string letters;
  for (std::size_t t = 0; t < sampled.size(); ++t)
    if (sampled[t]) letters += letter_of(states.clip_state[t]);
  if (letters.find_first_not_of('-') != std::string::npos) json["clip"] = letters;
}

OrderedJson rule_json(const RuleRecord& record, const Credit& before, std::size_t i, const Trajectory& trajectory) {
  const Credit& after = record.after[i];
  OrderedJson json{{"rule", record.rule}, {"kind", kKinds[static_cast<std::size_t>(record.kind)]}};
  const auto changed = [&](const char* name, const std::vector<double>& was, const std::vector<double>& is) {
    if (was != is) add_sampled(json, name, trajectory, is);
  };
  changed("advantage", before.advantage, after.advantage);
  changed("weight", before.weight, after.weight);
  changed("clip_scale", before.clip_scale, after.clip_scale);
  if (before.reward != after.reward) json["reward"] = rounded(after.total_reward());
  OrderedJson read;
  for (const RuleReading& reading : record.readings) add_sampled(read, reading.name, trajectory, reading.values[i]);
  if (!read.empty()) json["read"] = read;
  return json;
}

}  // namespace

TokenStates states_in_row(std::string_view row, std::size_t tokens) {
  // Most rows have none, and are not parsed again.
  if (row.find("\"clip_state\"") == std::string_view::npos) return {};
  const auto json = parse_json(row, "row").value();
  const auto list = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_array() && found->size() == tokens ? *found : Json::array();
  };
  const auto numbers = [&](const char* name) {
    std::vector<double> values;
    for (const auto& value : list(name))
      values.push_back(value.is_number() ? value.template get<double>() : std::numeric_limits<double>::quiet_NaN());
    return values;
  };
  TokenStates states{
      .ratio = numbers("ratio"), .gradient = numbers("gradient"), .scaled_advantage = numbers("scaled_advantage")};
  for (const auto& value : list("clip_state"))
    states.clip_state.push_back(value.is_string() ? value.get<std::string>() : std::string());
  return states.ratio.size() == states.clip_state.size() ? states : TokenStates{};
}

OrderedJson credit_json(const ViewedMethod& method, std::size_t i, const Trajectory& trajectory) {
  OrderedJson json = OrderedJson::object();
  const bool counts = method.included.empty() ? trajectory.leaf().is_included() : method.included[i];
  if (!counts && trajectory.leaf().is_included()) json["dropped"] = true;
  if (!method.credit.empty() && counts) {
    const Credit& credit = method.credit[i];
    add_sampled(json, "advantage", trajectory, credit.advantage);
    add_sampled(json, "weight", trajectory, credit.weight);
    add_sampled(json, "clip_scale", trajectory, credit.clip_scale);
    add_sampled(json, "value_target", trajectory, credit.value_target);
  }
  if (!method.states.empty()) add_states(json, trajectory, method.states[i]);
  if (method.chain.empty() || !counts) return json;
  const CreditTable fresh = fresh_credit(std::span(&trajectory, 1));
  const Credit* before = &fresh.front();
  json["reward"] = rounded(trajectory.penalised_score());
  for (const RuleRecord& record : method.chain) {
    json["chain"].push_back(rule_json(record, *before, i, trajectory));
    before = &record.after[i];
  }
  return json;
}

}  // namespace carnot
