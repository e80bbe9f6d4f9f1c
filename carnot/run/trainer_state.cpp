#include "carnot/run/trainer_state.h"

#include <limits>
#include <vector>

#include "carnot/base/json.h"

namespace carnot {
namespace {

constexpr int kVersion = 1;

OrderedJson counts_json(const UpdateCounts& counts) {
  return {{"updates", counts.updates}, {"skipped", counts.skipped}};
}

/// Takes members out of an object and notes what is wrong with them.
class StateReader {
 public:
  StateReader(const OrderedJson& object, std::string where) : object_(object), where_(std::move(where)) {}

  TrainerState read() {
    std::int64_t version = 0;
    whole(object_, "version", version, 1);
    if (version > kVersion) expect("version", "at most " + std::to_string(kVersion));
    TrainerState state;
    whole(object_, "step", state.step, 0);
    whole(object_, "seed", state.seed, std::numeric_limits<std::int64_t>::min());
    if (object_.contains("sampled_tokens")) whole(object_, "sampled_tokens", state.sampled_tokens, 0);
    text("kernels", state.kernels);
    counts("optimizer", state.optimizer);
    counts("critic_optimizer", state.critic_optimizer);
    coefficients(state.coefficients);
    unwritten_metrics(state.unwritten_metrics);
    return state;
  }

  std::vector<std::string> problems() && { return std::move(problems_); }

 private:
  void expect(const std::string& key, const std::string& what) {
    problems_.push_back(where_ + ": " + key + ": expected " + what);
  }

  void whole(const OrderedJson& object, const std::string& key, std::int64_t& value, std::int64_t least) {
    const auto found = object.find(key);
    const bool fits = found != object.end() && found->is_number_integer() &&
                      (!found->is_number_unsigned() ||
                       found->get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
    if (!fits || found->get<std::int64_t>() < least)
      return expect(key, "a whole number of at least " + std::to_string(least));
    value = found->get<std::int64_t>();
  }

  void text(const std::string& key, std::string& value) {
    const auto found = object_.find(key);
    if (found == object_.end()) return;
    if (!found->is_string()) return expect(key, "a text");
    value = found->get<std::string>();
  }

  void counts(const std::string& key, std::optional<UpdateCounts>& counts) {
    const auto found = object_.find(key);
    if (found == object_.end()) return;
    if (!found->is_object()) return expect(key, "an object");
    counts.emplace();
    whole(*found, "updates", counts->updates, 0);
    whole(*found, "skipped", counts->skipped, 0);
  }

  void coefficients(std::map<std::string, double>& values) {
    const auto found = object_.find("coefficients");
    if (found == object_.end() || !found->is_object()) return expect("coefficients", "an object");
    for (const auto& [name, value] : found->items()) {
      if (!value.is_number()) {
        expect("coefficients." + name, "a number");
        continue;
      }
      values[name] = value.get<double>();
    }
  }

  // A metric that is not a number is null in JSON.
  void unwritten_metrics(std::map<std::string, double>& values) {
    const auto found = object_.find("unwritten_metrics");
    if (found == object_.end()) return;
    if (!found->is_object()) return expect("unwritten_metrics", "an object");
    for (const auto& [name, value] : found->items()) {
      if (!value.is_number() && !value.is_null()) {
        expect("unwritten_metrics." + name, "a number or null");
        continue;
      }
      values[name] = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
    }
  }

  const OrderedJson& object_;
  std::string where_;
  std::vector<std::string> problems_{};
};

}  // namespace

std::string trainer_state_json(const TrainerState& state) {
  OrderedJson json{{"version", kVersion}, {"step", state.step}, {"seed", state.seed}};
  if (state.sampled_tokens > 0) json["sampled_tokens"] = state.sampled_tokens;
  if (!state.kernels.empty()) json["kernels"] = state.kernels;
  if (state.optimizer) json["optimizer"] = counts_json(*state.optimizer);
  if (state.critic_optimizer) json["critic_optimizer"] = counts_json(*state.critic_optimizer);
  json["coefficients"] = state.coefficients;
  if (!state.unwritten_metrics.empty()) json["unwritten_metrics"] = state.unwritten_metrics;
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Result<TrainerState> parse_trainer_state(std::string_view text, const std::string& where) {
  const auto json = parse_json_object<OrderedJson>(text, where);
  if (!json) return json.error();
  StateReader reader(*json, where);
  TrainerState state = reader.read();
  const std::vector<std::string> problems = std::move(reader).problems();
  if (!problems.empty()) return join_errors(problems);
  return state;
}

}  // namespace carnot
