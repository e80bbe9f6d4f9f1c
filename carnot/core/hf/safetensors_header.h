// hf/safetensors_header.h -- what a .safetensors file says about itself, checked. No LibTorch.
//
// The file: 8 bytes little-endian header length N, N bytes of JSON, then the tensors' bytes without gaps
// (github.com/huggingface/safetensors, "Format"). Nothing is believed: every number is checked against the file's
// size before it is used.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

/// One tensor: its bytes are [begin, end) of the file.
struct TensorEntry {
  std::string name{};
  std::string dtype{};  ///< as in the file: "F32", "BF16"
  std::vector<std::int64_t> shape{};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> entries{};  ///< by their offsets
  std::map<std::string, std::string> metadata{};
};

/// Bytes of an element; 0 for a dtype that is not read.
int element_size(std::string_view dtype);

/// Reads the header of the whole file `file`; errors begin with `name`, all problems at once.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view file, const std::string& name);

/// From the text of model.safetensors.index.json: the file of each tensor, a plain name within the index's folder.
Result<std::map<std::string, std::string>> parse_weight_map(std::string_view text, const std::string& name);

/// The 8 bytes and the JSON that precede the tensors' bytes, padded so that these begin at a multiple of 8. Entries
/// carry their bytes' place relative to that beginning.
std::string safetensors_header_bytes(const SafetensorsHeader& header);

}  // namespace carnot
