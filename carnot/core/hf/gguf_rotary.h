// hf/gguf_rotary.h -- rotary positions in a GGUF file, read and written. No LibTorch.
#pragma once

#include <string_view>
#include <vector>

#include "carnot/core/gguf/file.h"
#include "carnot/core/hf/gguf_keys.h"
#include "carnot/core/nn/model_config.h"

namespace carnot {

/// Into a config whose other numbers are read. Refuses what is not computed.
void read_gguf_rotary(GgufKeyReader& read, ModelConfig& config);
/// Adds the keys that read_gguf_rotary() reads.
void write_gguf_rotary(GgufKeyWriter& write, const ModelConfig& config);

/// What frequencies are divided by is stored as tensors: Llama 3.1's scaling in one, longrope's in two.
struct GgufRotaryTensor {
  std::string_view name{};
  std::vector<float> values{};
};
std::vector<GgufRotaryTensor> gguf_rotary_tensors(const ModelConfig& config);
bool is_gguf_rotary_tensor(std::string_view name);

/// Null if there is none.
const GgufTensor* find_gguf_tensor(const GgufFile& file, std::string_view name);

}  // namespace carnot
