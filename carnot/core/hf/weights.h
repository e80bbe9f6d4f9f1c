// hf/weights.h -- the weights of a Hugging Face folder, into a model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/nn/model.h"

namespace carnot {

/// Copies values by name. Missing, extra and misshapen tensors are listed, all at once; then nothing is copied.
Status copy_tensors(const std::vector<NamedTensor>& into, const std::vector<NamedTensor>& from,
                    const std::string& where);

/// copy_tensors into a model's weights; tensors that some writers store twice are ignored.
Status load_weights(const Model& model, const std::vector<NamedTensor>& tensors, const std::string& where);

/// config.json and weights of a Hugging Face folder, converted to the dtype and device of `options`.
Result<Model> load_model(const std::filesystem::path& folder, const at::TensorOptions& options);

}  // namespace carnot
