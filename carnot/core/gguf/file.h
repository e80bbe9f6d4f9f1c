// gguf/file.h -- what a GGUF file says about itself, checked: keys with values, and tensors.
//
// Versions 2 and 3, little-endian (github.com/ggml-org/ggml, docs/gguf.md). Nothing is believed: every number is
// checked against the file's size before it is used. What is returned looks into the file's bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/gguf/block_types.h"

namespace carnot {

/// The kinds of values, by their numbers in the file.
enum class GgufKind : std::uint32_t {
  Uint8,
  Int8,
  Uint16,
  Int16,
  Uint32,
  Int32,
  Float32,
  Bool,
  String,
  Array,
  Uint64,
  Int64,
  Float64
};

/// Bytes of a number; 0 for String and Array.
std::size_t gguf_kind_size(GgufKind kind);

struct GgufValue {
  GgufKind kind{};
  GgufKind element{};        ///< of an Array: neither Array nor unknown
  std::uint64_t count = 1;   ///< of an Array
  std::string_view bytes{};  ///< of a String its text; of an Array its elements as in the file
};

struct GgufTensor {
  std::string_view name{};
  std::vector<std::int64_t> shape{};  ///< as Hugging Face counts: rows before columns; the file has the reverse
  const GgufBlockType* type = nullptr;
  std::string_view bytes{};  ///< whole blocks, row after row
};

struct GgufFile {
  std::map<std::string_view, GgufValue> values{};
  std::vector<GgufTensor> tensors{};
};

/// Reads the whole file `file`; errors begin with `name`. Names and strings may be any bytes.
Result<GgufFile> parse_gguf(std::string_view file, const std::string& name);

}  // namespace carnot
