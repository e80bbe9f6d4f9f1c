// hf/weights.h -- the weights of a Hugging Face folder, into a model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/nn/model.h"

namespace carnot {

struct TensorShape {
  std::string name{};
  std::vector<std::int64_t> shape{};
};

/// The tensors of these names, in their order. Missing, extra and misshapen ones are listed, all at once.
Result<std::vector<at::Tensor>> find_tensors(const std::vector<TensorShape>& wanted,
                                             const std::vector<NamedTensor>& from, const std::string& where);

/// One tensor of a Hugging Face file: a weight of the model, or several of the same width, one behind the other, as
/// ModelFamily::fused_projections says.
struct StoredWeight {
  std::string name{};
  std::vector<at::Tensor> parts{};
};

/// What a file of the model's weights holds.
std::vector<StoredWeight> stored_weights(const Model& model);

/// The same as tensors; several parts are copied into one.
std::vector<NamedTensor> file_tensors(const std::vector<StoredWeight>& weights);

/// A model's tensors without those that some writers store twice.
std::vector<NamedTensor> without_copies(const std::vector<NamedTensor>& tensors, bool tied_head);

/// Copies values by name. An error as of find_tensors(); then nothing is copied.
Status copy_tensors(const std::vector<NamedTensor>& into, const std::vector<NamedTensor>& from,
                    const std::string& where);

/// The tensor in which such a file holds a projection of kProjectionNames: "qkv_proj" for "q_proj". Empty: its own.
std::string_view fused_name(std::string_view projection);

/// Copies a file's tensors into a model's weights, as copy_tensors does; copies are ignored.
Status load_weights(const Model& model, const std::vector<NamedTensor>& tensors, const std::string& where);

/// config.json and weights of a Hugging Face folder, converted to the dtype and device of `options`; of a model with
/// other parts, such as a vision tower, those of the text, and the log names the others.
Result<Model> load_model(const std::filesystem::path& folder, const at::TensorOptions& options);

}  // namespace carnot
