#include "carnot/core/hf/adapter_config.h"

#include "carnot/core/base/json.h"

namespace carnot {
namespace {

/// A key of adapter_config.json that changes the arithmetic, and the value that is computed; null and an empty list or
/// object say the same.
struct FixedKey {
  const char* key;
  OrderedJson value;
};

const std::vector<FixedKey>& fixed_keys() {
  static const std::vector<FixedKey> table{{"bias", "none"},
                                           {"use_dora", false},
                                           {"use_rslora", false},
                                           {"fan_in_fan_out", false},
                                           {"rank_pattern", nullptr},
                                           {"alpha_pattern", nullptr},
                                           {"modules_to_save", nullptr},
                                           {"layers_to_transform", nullptr},
                                           {"layer_replication", nullptr},
                                           {"target_parameters", nullptr},
                                           {"trainable_token_indices", nullptr},
                                           {"lora_bias", false},
                                           {"use_qalora", false},
                                           {"alora_invocation_tokens", nullptr}};
  return table;
}

bool is_nothing(const OrderedJson& value) {
  return value.is_null() || ((value.is_array() || value.is_object()) && value.empty());
}

}  // namespace

Result<LoraOptions> parse_adapter_config(std::string_view text, const std::string& name) {
  CARNOT_ASSIGN_OR_RETURN(const auto json, parse_json_object<OrderedJson>(text, name));
  std::vector<std::string> problems;
  const auto value_of = [&](const char* key) { return json.contains(key) ? json.at(key) : OrderedJson(); };
  const auto expect = [&](bool holds, const char* key, const std::string& expected) {
    if (!holds) problems.push_back(name + ": " + key + " is " + value_of(key).dump() + ", expected " + expected);
  };
  const OrderedJson rank = value_of("r"), alpha = value_of("lora_alpha");
  expect(value_of("peft_type") == "LORA", "peft_type", "\"LORA\"");
  expect(rank.is_number_integer() && rank > 0 && rank < (1 << 20), "r", "an integer of at least 1");
  expect(alpha.is_number() && alpha > 0, "lora_alpha", "a number above 0");
  for (const FixedKey& fixed : fixed_keys()) {
    const OrderedJson value = value_of(fixed.key);
    expect(is_nothing(value) || value == fixed.value, fixed.key,
           (fixed.value.is_null() ? "none" : fixed.value.dump()) + ", the only value that is computed");
  }
  if (!problems.empty()) return join_errors(problems);
  return LoraOptions{.rank = rank.get<int>(), .alpha = alpha.get<double>()};
}

std::string adapter_config_json(const LoraOptions& lora, const std::string& base_model) {
  const OrderedJson json{{"peft_type", "LORA"},
                         {"task_type", "CAUSAL_LM"},
                         {"base_model_name_or_path", base_model.empty() ? OrderedJson() : OrderedJson(base_model)},
                         {"r", lora.rank},
                         {"lora_alpha", lora.alpha},
                         {"lora_dropout", 0.0},
                         {"target_modules", lora.targets},
                         {"bias", "none"},
                         {"fan_in_fan_out", false},
                         {"use_rslora", false},
                         {"use_dora", false},
                         {"inference_mode", true}};
  return json.dump(2) + "\n";
}

}  // namespace carnot
