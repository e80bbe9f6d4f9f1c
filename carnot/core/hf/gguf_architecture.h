// hf/gguf_architecture.h -- what llama.cpp calls a family's models, and what its files say of them: a row each. No
// LibTorch.
//
// What a family computes is in nn/model_family.h. Here is only what GGUF files say in another way, or leave to
// llama.cpp's program (github.com/ggml-org/llama.cpp, src/models and conversion).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "carnot/core/nn/model_config.h"

namespace carnot {

/// Layers that see a window, as files can say it.
enum class GgufWindows {
  None,   ///< none can
  Every,  ///< all, unless the window is 0
  Turns,  ///< all but the last of so many; always some
};

struct GgufArchitecture {
  std::string_view family{};  ///< nn/model_family.h's
  std::string_view name{};    ///< general.architecture. Files are read by the first row of the name that has windows
                              ///< as the file does.
  /// Rows of queries and keys are stored as GgufWeightName::interleaved_heads says.
  bool interleaved = false;
  bool frequency_factors = false;  ///< llama.cpp computes Llama 3.1's rotary scaling
  GgufWindows windows = GgufWindows::None;
  std::string_view final_norm = "output_norm";
  std::string_view norm_before_mlp = "ffn_norm";
  double window_rope_theta = 0;   ///< of windowed layers where the file says nothing; 0: rope_theta, whatever it says
  bool normalises_top_k = false;  ///< of experts: no key says so
  /// What scores are multiplied by; null: 1 / sqrt(head_dim). Files say it only with the key "attention.scale".
  double (*attention_scale)(const ModelConfig& config) = nullptr;
  // Without which llama.cpp does not load a file:
  bool own_head = false;                     ///< the head is not tied to the embedding
  bool full_width = false;                   ///< num_heads * head_dim is hidden_size
  bool ungrouped = false;                    ///< as many heads of keys and values as of queries
  std::span<const std::string_view> keys{};  ///< that other architectures do not have, without the name before them

  bool has(std::string_view key) const;
};

/// Null if the family is not written.
const GgufArchitecture* find_gguf_architecture(std::string_view family);

/// By general.architecture. Null if it is not read.
const GgufArchitecture* read_gguf_architecture(std::string_view name, bool has_window);

/// "llama, qwen2 or ...": what is read; "\"llama\", ...": families that are written.
std::string gguf_architectures_read();
std::string gguf_families_written();

}  // namespace carnot
