#include "carnot/core/data/rollout_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "carnot/core/base/json_fields.h"

namespace carnot {
namespace {

/// Of the rewards' size: other programs add them up in another order, or in float32.
constexpr double kScoreTolerance = 1e-6;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A reward or a penalty, a score or a measure.
void read_reward(const JsonFields& fields, const char* name, double& value) {
  fields.read(name, value);
  if (std::abs(value) > kLargestReward) fields.expected(name, "a number from -1e9 to 1e9");
}

/// One row being read: the JSON, and the per-token lists that are cut into turns.
class RowReader {
 public:
  RowReader(const Json& object, const std::string& where, std::vector<std::string>& problems)
      : fields_(object, where, problems), where_(where), problems_(problems) {}

  RolloutRow read() {
    read_identity();
    bool complete = true;
    for (const char* name : {"uid", "traj_id", "token_ids", "loss_mask", "score"})
      complete = fields_.require(name) && complete;
    if (!complete) return std::move(row_);
    read_tokens();
    read_mask();
    if (mask_.size() == tokens_.size()) {
      read_segments();
      read_turns();
      check_score();
      read_columns();
      read_credit();
    }
    return std::move(row_);
  }

 private:
  void read_identity() {
    int version = kRolloutRowVersion;
    fields_.read_whole("version", version);
    if (version > kRolloutRowVersion)
      fields_.problem("version: row format " + std::to_string(version) + " is newer than this program's " +
                      std::to_string(kRolloutRowVersion));
    fields_.read_text("uid", row_.group.uid);
    fields_.read_whole("step", row_.group.step);
    if (version == 1 && row_.group.step < std::numeric_limits<std::int64_t>::max()) row_.group.step += 1;
    fields_.read_digits("seed", row_.group.seed);
    fields_.read_whole("task_index", row_.group.task_index);
    fields_.read("query_baseline", row_.group.query_baseline);
    read_ground_truth();
    read_info();
    if (fields_.find("tree") != nullptr) fields_.read_whole("tree", row_.tree.emplace());
    if (fields_.find("parent") != nullptr) {
      fields_.read_text("parent", row_.parent.emplace());
      fields_.require("branch_turn");
    }
    read_leaf();
  }

  void read_leaf() {
    Leaf& leaf = row_.leaf;
    fields_.read_text("traj_id", leaf.trajectory_id);
    fields_.read_whole("branch_turn", leaf.branch_turn);
    read_reward(fields_, "score", leaf.score);
    leaf.outcome =
        static_cast<Outcome>(fields_.read_word("outcome", kOutcomeNames, static_cast<int>(Outcome::Finished)));
    bool valid = true;
    fields_.read("valid", valid);
    if (!valid) leaf.outcome = Outcome::InfraFailed;
    fields_.read("dropped", leaf.dropped);
    fields_.read("success", leaf.success);
    if (fields_.find("answer") != nullptr) fields_.read_text("answer", leaf.answer.emplace());
    fields_.read_whole("sibling", leaf.sibling);
    if (const Json* measures = object("measures"))
      for (const auto& [name, value] : measures->items()) {
        if (!value.is_number()) {
          fields_.expected("measures." + name, "a number", value);
          continue;
        }
        leaf.measures[name] = value.get<double>();
      }
  }

  const Json* object(const char* name) const {
    const Json* json = fields_.find(name);
    if (json == nullptr || json->is_object()) return json;
    fields_.expected(name, "an object", *json);
    return nullptr;
  }

  void read_ground_truth() {
    const Json* json = fields_.find("gts");
    if (json == nullptr) return;
    const Json list = json->is_array() ? *json : Json::array({*json});
    for (const Json& answer : list)
      row_.group.ground_truth.push_back(
          answer.is_string() ? answer.get<std::string>() : answer.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  void read_info() {
    if (const Json* info = object("info"))
      for (const auto& [name, value] : info->items()) {
        if (!value.is_string()) {
          fields_.expected("info." + name, "a string", value);
          continue;
        }
        row_.group.info[name] = value.get<std::string>();
      }
  }

  void read_tokens() {
    const Json& list = *fields_.find("token_ids");
    if (!list.is_array()) return fields_.expected("token_ids", "a list of token ids", list);
    for (std::size_t i = 0; i < list.size(); ++i) {
      TokenId token = -1;
      if (!JsonFields::whole(list[i], token) || token < 0)
        return fields_.expected("token_ids[" + std::to_string(i) + "]", "a token id", list[i]);
      tokens_.push_back(token);
    }
  }

  void read_mask() {
    const Json* list = fields_.list("loss_mask", tokens_.size());
    if (list == nullptr) return;
    for (std::size_t i = 0; i < list->size(); ++i) {
      const Json& entry = (*list)[i];
      int bit = entry.is_boolean() ? entry.get<bool>() : -1;
      if (bit < 0 && (!JsonFields::whole(entry, bit) || bit < 0 || bit > 1))
        return fields_.expected("loss_mask[" + std::to_string(i) + "]", "0 or 1", entry);
      mask_.push_back(bit == 1);
    }
  }

  void read_segments() {
    const Json* list = fields_.list("segment", tokens_.size());
    if (list == nullptr) return;
    for (std::size_t i = 0; i < list->size(); ++i) {
      const Json& entry = (*list)[i];
      const int kind =
          entry.is_string() ? JsonFields::index_of(entry.get_ref<const std::string&>(), kSpanKindNames) : -1;
      if (kind < 0) {
        kinds_.clear();
        return fields_.expected("segment[" + std::to_string(i) + "]",
                                "one of template | prompt | think | action | observation", entry);
      }
      kinds_.push_back(static_cast<SpanKind>(kind));
    }
  }

  void read_turns() {
    const Json* list = fields_.find("turns");
    if (list == nullptr) return read_single_turn();
    if (!list->is_array() || list->empty()) return fields_.expected("turns", "a list of at least one turn", *list);
    int at = 0;
    for (std::size_t k = 0; k < list->size(); ++k) {
      const std::string where = where_ + ": turns[" + std::to_string(k) + "]";
      const Json& json = (*list)[k];
      if (!json.is_object()) {
        problems_.push_back(where + ": expected an object, found " + shown(json));
        return;
      }
      const JsonFields turn(json, where, problems_);
      if (!turn.require("start") || !turn.require("end")) return;
      int start = -1;
      int end = -1;
      turn.read_whole("start", start);
      turn.read_whole("end", end);
      if (start != at || end < start || end > static_cast<int>(tokens_.size()))
        return turn.problem("covers [" + std::to_string(start) + ", " + std::to_string(end) +
                            "), expected to start at " + std::to_string(at) + " and to end by " +
                            std::to_string(tokens_.size()));
      at = end;
      row_.turns.push_back(read_turn(turn, start, end));
    }
    if (at != static_cast<int>(tokens_.size()))
      fields_.problem("turns: cover " + std::to_string(at) + " of " + std::to_string(tokens_.size()) + " tokens");
  }

  /// Turns without any reward leave it to the score.
  void check_score() const {
    double sum = 0, size = 1;
    for (const Turn& turn : row_.turns) {
      sum += turn.reward;
      size += std::abs(turn.reward);
    }
    if (has_rewards_ && std::abs(row_.leaf.score - sum) > kScoreTolerance * size)
      fields_.problem("score: is " + shown(*fields_.find("score")) + ", and the rewards of the turns add up to " +
                      shown(Json(sum)) + "; expected the same");
  }

  /// Structure is stored, never inferred: a row without `turns` becomes one turn, if possible.
  void read_single_turn() {
    const auto begin = std::find(mask_.begin(), mask_.end(), true);
    const auto end = std::find(begin, mask_.end(), false);
    if (std::find(end, mask_.end(), true) != mask_.end())
      return fields_.problem("misses the field turns: loss_mask has several runs of sampled tokens");
    row_.turns.push_back(cut_turn(0, static_cast<int>(tokens_.size()), Context::Growing, fields_));
    row_.turns.back().reward = row_.leaf.score;
  }

  Turn read_turn(const JsonFields& fields, int start, int end) {
    constexpr std::string_view kContexts[] = {"growing", "fresh"};
    const auto context =
        static_cast<Context>(fields.read_word("context", kContexts, static_cast<int>(Context::Growing)));
    Turn turn = cut_turn(start, end, context, fields);
    read_reward(fields, "reward", turn.reward);
    read_reward(fields, "penalty", turn.penalty);
    has_rewards_ = has_rewards_ || fields.find("reward") != nullptr;
    fields.read("valid_action", turn.valid_action);
    fields.read("info_gain", turn.info_gain);
    fields.read("turn_entropy", turn.turn_entropy);
    fields.read_text("anchor", turn.anchor);
    fields.read_text("tool", turn.tool);
    fields.read_text("status", turn.status);
    fields.read("latency_ms", turn.latency_ms);
    fields.read_whole("policy_version", turn.policy_version);
    return turn;
  }

  /// Tokens, sampled range and spans of [start, end).
  Turn cut_turn(int start, int end, Context context, const JsonFields& fields) {
    Turn turn{.context = context};
    turn.tokens.assign(tokens_.begin() + start, tokens_.begin() + end);
    const auto first = mask_.begin() + start;
    const auto last = mask_.begin() + end;
    const auto begin = std::find(first, last, true);
    const auto stop = std::find(begin, last, false);
    if (std::find(stop, last, true) != last) fields.problem("loss_mask has several runs of sampled tokens in one turn");
    turn.sampled_begin = static_cast<int>(begin - first);
    turn.sampled_end = static_cast<int>(stop - first);
    const SpanKind before = row_.turns.empty() || context == Context::Fresh ? SpanKind::Prompt : SpanKind::Observation;
    for (int i = 0; i < end - start; ++i) {
      const SpanKind guess = i < turn.sampled_begin ? before
                             : i < turn.sampled_end ? SpanKind::Think
                                                    : SpanKind::Observation;
      extend_spans(turn.spans, kinds_.empty() ? guess : kinds_[start + i], 1);
    }
    return turn;
  }

  /// Numbers, null for none; empty if the field is absent or wrong.
  std::vector<double> numbers(const char* name) {
    const Json* list = fields_.list(name, tokens_.size());
    if (list == nullptr) return {};
    std::vector<double> values;
    for (std::size_t i = 0; i < list->size(); ++i) {
      const Json& entry = (*list)[i];
      if (!entry.is_number() && !entry.is_null()) {
        fields_.expected(name + ("[" + std::to_string(i) + "]"), "a number or null", entry);
        return {};
      }
      values.push_back(entry.is_null() ? kNan : entry.get<double>());
    }
    return values;
  }

  void read_columns() {
    for (int c = 0; c < kNumColumns; ++c) {
      const auto column = static_cast<Column>(c);
      const char* name = kColumnFields[c].data();
      if (fields_.find(name) == nullptr) continue;
      const std::vector<double> values = numbers(name);
      if (values.size() != tokens_.size()) continue;
      auto at = values.begin();
      for (const Turn& turn : row_.turns) {
        const auto end = at + static_cast<std::ptrdiff_t>(turn.tokens.size());
        row_.columns[column].emplace_back(at, end);
        at = end;
      }
    }
  }

  /// Null keeps the initial value where nothing was sampled.
  void read_credit() {
    const auto take = [this](const char* name, double start) {
      std::vector<double> values(tokens_.size(), start);
      if (fields_.find(name) == nullptr) return values;
      row_.has_credit = true;
      const std::vector<double> given = numbers(name);
      for (std::size_t i = 0; i < given.size(); ++i)
        if (mask_[i] || given[i] == given[i]) values[i] = given[i];
      return values;
    };
    row_.credit = {.advantage = take("advantage", 0),
                   .weight = take("weight", 1),
                   .clip_scale = take("clip_scale", 1),
                   .value_target = take("value_target", kNan)};
  }

  JsonFields fields_;
  std::string where_;
  std::vector<std::string>& problems_;
  RolloutRow row_{};
  std::vector<TokenId> tokens_{};
  std::vector<bool> mask_{};
  bool has_rewards_ = false;       ///< some turn has
  std::vector<SpanKind> kinds_{};  ///< empty if the row has no `segment`
};

}  // namespace

std::optional<RolloutRow> parse_rollout_row(std::string_view line, const std::string& where,
                                            std::vector<std::string>& problems) {
  const auto object = parse_json(line, where);
  if (!object) {
    problems.push_back(object.error().message);
    return std::nullopt;
  }
  if (!object->is_object()) {
    problems.push_back(where + ": expected an object, found " + shown(*object));
    return std::nullopt;
  }
  const std::size_t before = problems.size();
  RolloutRow row = RowReader(*object, where, problems).read();
  if (problems.size() > before) return std::nullopt;
  return row;
}

}  // namespace carnot
