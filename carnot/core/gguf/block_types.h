// gguf/block_types.h -- the number types of a GGUF file's tensors: blocks of numbers, and what they mean in float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace carnot {

struct GgufBlockType {
  std::uint32_t number = 0;  ///< as in the file
  std::string_view name{};   ///< as ggml calls it: "Q4_1"
  int values = 0;            ///< of one block
  int bytes = 0;
  /// One block's values, rounded as the Python package `gguf` rounds them.
  void (*dequantize)(const std::uint8_t* block, float* values) = nullptr;
  /// The block of these values, as that package makes it; false if one is too large. Null: the type is only read.
  bool (*quantize)(const float* values, std::uint8_t* block) = nullptr;
};

/// Null if the type is not read.
const GgufBlockType* find_gguf_block_type(std::uint32_t number);
/// By ggml's name. REQUIRES: a type that is read.
const GgufBlockType& gguf_block_type(std::string_view name);

/// Name of any type that ggml has had, read or not; its number if there is none.
std::string gguf_type_name(std::uint32_t number);

/// "F32, F16, ...": those that are read.
std::string gguf_types_read();

/// All values of some blocks, one after the other. REQUIRES: whole blocks, and room for exactly their values.
void dequantize(const GgufBlockType& type, std::string_view blocks, std::span<float> values);

/// Appends the blocks of `values` to `blocks`; false if a number is too large for the type. REQUIRES: a type that is
/// written, values for whole blocks, all finite.
bool quantize(const GgufBlockType& type, std::span<const float> values, std::string& blocks);

}  // namespace carnot
