// hf/adapter_config.h -- adapter_config.json, as PEFT writes and reads it. No LibTorch.
#pragma once

#include <string>
#include <string_view>

#include "carnot/core/base/result.h"
#include "carnot/core/nn/lora_options.h"

namespace carnot {

/// Rank and alpha. Keys that ask for something that is not computed (DoRA, ranks by pattern, trained biases, ...) are
/// refused by name, all of them at once. The targets stay as they are by default: PEFT writes `target_modules` in
/// several ways, and the tensors' names say the same.
Result<LoraOptions> parse_adapter_config(std::string_view text, const std::string& name);

/// An adapter_config.json that PEFT loads. `base_model`: path or name of the weights below; empty: left out.
std::string adapter_config_json(const LoraOptions& lora, const std::string& base_model);

}  // namespace carnot
