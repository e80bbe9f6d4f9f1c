// hf/generation_config.h -- what a model folder's generation_config.json says about generating. No LibTorch.
//
// The end tokens are used: all of them end a message. Sampling settings are for generation outside of training;
// rollouts sample as the recipe says, because their log-probabilities have to be the policy's own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

struct GenerationConfig {
  std::vector<int> eos_tokens{};
  std::optional<bool> do_sample{};  ///< false or absent: greedy
  std::optional<double> temperature{};
  std::optional<double> top_p{};
  std::optional<int> top_k{};

  /// Settings of the file that change what is generated and that nothing here computes ("repetition_penalty 1.05").
  std::vector<std::string> ignored{};
};

/// Reads generation_config.json; values of the wrong type are refused by name, all at once.
Result<GenerationConfig> parse_generation_config(std::string_view json, const std::string& name);

/// A generation_config.json for a model that came without one.
std::string generation_config_json(const std::vector<int>& eos_tokens);

}  // namespace carnot
