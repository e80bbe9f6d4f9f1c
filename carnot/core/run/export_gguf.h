// run/export_gguf.h -- a model folder as one GGUF file, which llama.cpp runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/gguf/writer.h"
#include "carnot/core/nn/model.h"

namespace carnot {

/// All but the weights.
struct GgufDescription {
  ModelConfig config{};
  GgufSettings settings{};
  const GgufBlockType* type = nullptr;  ///< of matrices
};

/// Reads configuration, tokenizer and chat template of a model folder. `type`: f32, f16, bf16 or q8_0. What a GGUF file
/// cannot say is an error, all of it at once.
Result<GgufDescription> describe_gguf(const std::filesystem::path& folder, const std::string& type);

/// Writes the file, as llama.cpp's converter does: vectors in F32, and in F16 matrices whose rows are no whole blocks
/// of the type. The file is complete, or as it was. `weights`: a model folder's tensors, all finite; `name` precedes
/// what is wrong with them.
Status write_gguf_model(const std::filesystem::path& file, const GgufDescription& description,
                        const std::vector<NamedTensor>& weights, const std::string& name);

}  // namespace carnot
