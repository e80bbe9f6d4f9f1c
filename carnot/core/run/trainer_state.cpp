#include "carnot/core/run/trainer_state.h"

#include <limits>
#include <vector>

#include "carnot/core/base/json_fields.h"

namespace carnot {
namespace {

constexpr int kVersion = 1;

OrderedJson counts_json(const UpdateCounts& counts) {
  return {{"updates", counts.updates}, {"skipped", counts.skipped}};
}

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

void read_counts(const JsonFields& from, const char* name, std::optional<UpdateCounts>& counts) {
  if (from.find(name) == nullptr) return;
  const auto fields = from.object(name, "an object");
  if (!fields) return;
  counts.emplace();
  fields->read_whole("updates", counts->updates, 0, kMost);
  fields->read_whole("skipped", counts->skipped, 0, kMost);
}

/// Numbers by name. `null_is_nan`: a metric that is not a number is null in JSON.
void read_numbers(const JsonFields& from, const char* name, bool null_is_nan, std::map<std::string, double>& values) {
  const Json* found = from.find(name);
  if (found == nullptr || !found->is_object()) return from.expected(name, "an object");
  for (const auto& [key, value] : found->items()) {
    if (value.is_number())
      values[key] = value.get<double>();
    else if (value.is_null() && null_is_nan)
      values[key] = std::numeric_limits<double>::quiet_NaN();
    else
      from.expected(name + ("." + key), null_is_nan ? "a number or null" : "a number", value);
  }
}

}  // namespace

std::string trainer_state_json(const TrainerState& state) {
  OrderedJson json{{"version", kVersion}, {"step", state.step}, {"seed", state.seed}};
  if (state.sampled_tokens > 0) json["sampled_tokens"] = state.sampled_tokens;
  if (!state.kernels.empty()) json["kernels"] = state.kernels;
  if (state.optimizer) json["optimizer"] = counts_json(*state.optimizer);
  if (state.critic_optimizer) json["critic_optimizer"] = counts_json(*state.critic_optimizer);
  json["coefficients"] = state.coefficients;
  if (!state.alarms.empty()) json["alarms"] = state.alarms;
  if (!state.unwritten_metrics.empty()) json["unwritten_metrics"] = state.unwritten_metrics;
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Result<TrainerState> parse_trainer_state(std::string_view text, const std::string& where) {
  CARNOT_ASSIGN_OR_RETURN(const auto json, parse_json_object(text, where));
  std::vector<std::string> problems;
  const JsonFields fields(json, where, problems);
  std::int64_t version = 0;
  TrainerState state;
  fields.read_whole("version", version, 1, kMost);
  if (version > kVersion) fields.expected("version", "at most " + std::to_string(kVersion));
  fields.read_whole("step", state.step, 0, kMost);
  fields.read_whole("seed", state.seed, std::numeric_limits<std::int64_t>::min(), kMost);
  if (fields.find("sampled_tokens") != nullptr) fields.read_whole("sampled_tokens", state.sampled_tokens, 0, kMost);
  fields.read("kernels", state.kernels);
  read_counts(fields, "optimizer", state.optimizer);
  read_counts(fields, "critic_optimizer", state.critic_optimizer);
  read_numbers(fields, "coefficients", false, state.coefficients);
  if (fields.find("alarms") != nullptr) read_numbers(fields, "alarms", false, state.alarms);
  if (fields.find("unwritten_metrics") != nullptr)
    read_numbers(fields, "unwritten_metrics", true, state.unwritten_metrics);
  if (!problems.empty()) return join_errors(problems);
  return state;
}

}  // namespace carnot
