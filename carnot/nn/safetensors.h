// nn/safetensors.h -- Hugging Face's tensor files: read by memory map, written atomically.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "carnot/base/result.h"
#include "carnot/nn/model.h"

namespace carnot {

struct TensorFile {
  std::vector<NamedTensor> tensors{};  ///< in the order of their offsets; CPU
  std::map<std::string, std::string> metadata{};
};

/// Reads one .safetensors file. Tensors share the file's memory map (copy-on-write) where aligned. Every number of the
/// header is checked against the file's size first: truncated, overlapping, misshapen or unknown dtypes are named.
Result<TensorFile> read_safetensors(const std::filesystem::path& path);

/// A single model.safetensors, or the shards that model.safetensors.index.json names.
Result<TensorFile> read_model_tensors(const std::filesystem::path& folder);

/// Writes (temporary file, sync, rename). Tensors go by descending element size, then name, aligned to 8 bytes.
Status write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                         const std::map<std::string, std::string>& metadata = {});

/// Copies tensors into a model's weights by name. Missing, extra and misshapen ones are listed, all at once.
Status load_weights(const Model& model, const std::vector<NamedTensor>& tensors, const std::string& where);

/// config.json and weights of a Hugging Face folder, converted to the dtype and device of `options`.
Result<Model> load_model(const std::filesystem::path& folder, const at::TensorOptions& options);

}  // namespace carnot
