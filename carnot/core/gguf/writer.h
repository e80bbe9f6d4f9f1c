// gguf/writer.h -- writes a GGUF file (version 3): keys, then tensors, made row by row while the file is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/gguf/block_types.h"

namespace carnot {

/// Each alternative is written as the kind of its type (gguf/file.h).
using GgufSetting = std::variant<bool, std::uint32_t, float, std::string, std::vector<std::int32_t>, std::vector<float>,
                                 std::vector<std::string>>;
using GgufSettings = std::map<std::string, GgufSetting>;

struct GgufPendingTensor {
  std::string name{};
  std::vector<std::int64_t> shape{};  ///< as Hugging Face counts: rows before columns; one number for a vector
  const GgufBlockType* type = nullptr;
  /// Puts the finite numbers of a row into `values`; a vector is one row.
  std::function<void(std::int64_t row, std::span<float> values)> read_row{};
};

/// Writes atomically (base/file.h). An error where a number is too large for its tensor's type; then `path` stays as it
/// was. REQUIRES: types that are written, rows of whole blocks.
Status write_gguf(const std::filesystem::path& path, const GgufSettings& settings,
                  const std::vector<GgufPendingTensor>& tensors);

}  // namespace carnot
