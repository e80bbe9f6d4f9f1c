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

/// A model's tensors without those that some writers store twice.
std::vector<NamedTensor> without_copies(const std::vector<NamedTensor>& tensors, bool tied_head);

/// Copies values by name. An error as of find_tensors(); then nothing is copied.
Status copy_tensors(const std::vector<NamedTensor>& into, const std::vector<NamedTensor>& from,
                    const std::string& where);

/// copy_tensors into a model's weights; copies are ignored.
Status load_weights(const Model& model, const std::vector<NamedTensor>& tensors, const std::string& where);

/// config.json and weights of a Hugging Face folder, converted to the dtype and device of `options`.
Result<Model> load_model(const std::filesystem::path& folder, const at::TensorOptions& options);

}  // namespace carnot
