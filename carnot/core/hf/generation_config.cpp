#include "carnot/core/hf/generation_config.h"

#include "carnot/core/base/json.h"
#include "carnot/core/hf/json_object_reader.h"

namespace carnot {
namespace {

/// Settings that transformers applies next to temperature, top_p and top_k, with the value that changes nothing.
const std::vector<std::pair<std::string, OrderedJson>>& other_settings() {
  static const std::vector<std::pair<std::string, OrderedJson>> kSettings = {{"repetition_penalty", 1.0},
                                                                             {"encoder_repetition_penalty", 1.0},
                                                                             {"no_repeat_ngram_size", 0},
                                                                             {"num_beams", 1},
                                                                             {"min_p", 0.0},
                                                                             {"typical_p", 1.0},
                                                                             {"epsilon_cutoff", 0.0},
                                                                             {"eta_cutoff", 0.0},
                                                                             {"min_length", 0},
                                                                             {"min_new_tokens", 0},
                                                                             {"length_penalty", 1.0},
                                                                             {"penalty_alpha", 0.0},
                                                                             {"bad_words_ids", {}},
                                                                             {"suppress_tokens", {}},
                                                                             {"forced_eos_token_id", {}},
                                                                             {"guidance_scale", 1.0}};
  return kSettings;
}

}  // namespace

Result<GenerationConfig> parse_generation_config(std::string_view json_text, const std::string& name) {
  CARNOT_ASSIGN_OR_RETURN(const auto json, parse_json_object<OrderedJson>(json_text, name));
  JsonObjectReader reader(json, name);
  GenerationConfig config;
  reader.tokens("eos_token_id", config.eos_tokens);
  reader.boolean("do_sample", config.do_sample);
  reader.number("temperature", config.temperature);
  reader.number("top_p", config.top_p);
  reader.integer("top_k", config.top_k);
  for (const auto& [key, neutral] : other_settings()) {
    const OrderedJson* found = reader.find(key);
    if (found && *found != neutral) config.ignored.push_back(key + " " + found->dump());
  }
  if (!reader.problems().empty()) return join_errors(reader.problems());
  return config;
}

std::string generation_config_json(const std::vector<int>& eos_tokens) {
  OrderedJson json = OrderedJson::object();
  if (!eos_tokens.empty())
    json["eos_token_id"] = eos_tokens.size() == 1 ? OrderedJson(eos_tokens[0]) : OrderedJson(eos_tokens);
  return json.dump(2) + "\n";
}

}  // namespace carnot
