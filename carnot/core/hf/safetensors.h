// hf/safetensors.h -- Hugging Face's tensor files: read by memory map, written atomically.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/nn/model.h"

namespace carnot {

struct TensorFile {
  std::vector<NamedTensor> tensors{};  ///< in the order of their offsets; CPU
  std::map<std::string, std::string> metadata{};
};

/// Reads one .safetensors file. Tensors share the file's memory map (copy-on-write) where aligned. Every number of the
/// header is checked against the file's size first: truncated, overlapping, misshapen or unknown dtypes are named.
Result<TensorFile> read_safetensors(const std::filesystem::path& path);

/// The same for a file of weights: one that holds NaN or infinite numbers is refused, naming file and tensors.
Result<TensorFile> read_weights(const std::filesystem::path& path);

/// A single model.safetensors, or the shards that model.safetensors.index.json names; read as read_weights() does.
Result<TensorFile> read_model_tensors(const std::filesystem::path& folder);

/// The names of the files that read_model_tensors reads.
Result<std::vector<std::string>> model_tensor_files(const std::filesystem::path& folder);

/// Writes (temporary file, sync, rename). Tensors go by descending element size, then name, aligned to 8 bytes.
Status write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                         const std::map<std::string, std::string>& metadata = {});

/// A tensor that is made when its file is written.
struct PendingTensor {
  std::string name{};
  std::int64_t bytes = 0;
  std::function<Result<at::Tensor>()> make{};
};

/// What read_model_tensors reads: model.safetensors, or where the tensors take more than `shard_bytes`, shards of at
/// most that size (a larger tensor has its own) and model.safetensors.index.json. One shard is made at a time.
Status write_model_tensors(const std::filesystem::path& folder, const std::vector<PendingTensor>& tensors,
                           std::int64_t shard_bytes);
Status write_model_tensors(const std::filesystem::path& folder, const std::vector<NamedTensor>& tensors,
                           std::int64_t shard_bytes);

}  // namespace carnot
