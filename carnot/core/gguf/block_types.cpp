#include "carnot/core/gguf/block_types.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "carnot/core/base/check.h"
#include "carnot/core/gguf/little_endian.h"

namespace carnot {
namespace {

using Byte = std::uint8_t;

constexpr int kShort = 32;   // values of a block of the older types
constexpr int kLong = 256;   // of the K types
constexpr int kScales = 12;  // bytes with the scales and minima of Q4_K and Q5_K

template <class Number>
Number number_at(const Byte* bytes) {
  return from_little_endian<Number>({reinterpret_cast<const char*>(bytes), sizeof(Number)});
}

float half(const Byte* bytes) {
  const auto bits = number_at<std::uint16_t>(bytes);
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16, rest = bits & 0x7fff;
  if (rest < 0x0400) {  // zero or subnormal: a multiple of 2^-24
    const float magnitude = static_cast<float>(rest) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  const std::uint32_t exponent = rest < 0x7c00 ? 112U << 23 : 224U << 23;
  return std::bit_cast<float>(sign | ((rest << 13) + exponent));
}

void f32(const Byte* block, float* values) { *values = number_at<float>(block); }
void f16(const Byte* block, float* values) { *values = half(block); }
void bf16(const Byte* block, float* values) {
  *values = std::bit_cast<float>(static_cast<std::uint32_t>(number_at<std::uint16_t>(block)) << 16);
}

template <class Number>
void put(Number number, Byte* bytes) {
  const auto stored = to_little_endian(number);
  std::copy(stored.begin(), stored.end(), bytes);
}

/// The nearest half, of two as near the even one; false if that is infinite. REQUIRES: a finite value.
bool put_half(float value, Byte* bytes) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  std::uint32_t rest = bits & 0x7fff'ffff;
  if (rest < 0x3880'0000) {  // below 2^-14: a multiple of 2^-24, which is the last bit of 0.5
    rest = std::bit_cast<std::uint32_t>(std::abs(value) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
  } else {
    rest = (rest + 0xfff + (rest >> 13 & 1) - (112U << 23)) >> 13;
  }
  const bool fits = rest < 0x7c00;
  put(static_cast<std::uint16_t>((bits >> 16 & 0x8000) | std::min(rest, 0x7c00U)), bytes);
  return fits;
}

bool to_f32(const float* values, Byte* block) {
  put(*values, block);
  return true;
}
bool to_f16(const float* values, Byte* block) { return put_half(*values, block); }
bool to_bf16(const float* values, Byte* block) {
  const auto bits = std::bit_cast<std::uint32_t>(*values);
  const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  put(static_cast<std::uint16_t>(rounded), block);
  return (rounded & 0x7f80) != 0x7f80;
}

/// The i-th of 32 numbers of four bits: the low halves of 16 bytes, then their high halves.
int four_bits(const Byte* bytes, int i) { return i < kShort / 2 ? bytes[i] & 15 : bytes[i - kShort / 2] >> 4; }

void q4_0(const Byte* block, float* values) {
  const float scale = half(block);
  for (int i = 0; i < kShort; ++i) values[i] = scale * static_cast<float>(four_bits(block + 2, i) - 8);
}

void q4_1(const Byte* block, float* values) {
  const float scale = half(block), least = half(block + 2);
  for (int i = 0; i < kShort; ++i) values[i] = scale * static_cast<float>(four_bits(block + 4, i)) + least;
}

/// With the fifth bits of all numbers in four bytes before the other bits.
int five_bits(const Byte* bytes, int i) {
  const auto fifth = number_at<std::uint32_t>(bytes) >> i & 1;
  return four_bits(bytes + 4, i) | static_cast<int>(fifth << 4);
}

void q5_0(const Byte* block, float* values) {
  const float scale = half(block);
  for (int i = 0; i < kShort; ++i) values[i] = scale * static_cast<float>(five_bits(block + 2, i) - 16);
}

void q5_1(const Byte* block, float* values) {
  const float scale = half(block), least = half(block + 2);
  for (int i = 0; i < kShort; ++i) values[i] = scale * static_cast<float>(five_bits(block + 4, i)) + least;
}

void q8_0(const Byte* block, float* values) {
  const float scale = half(block);
  for (int i = 0; i < kShort; ++i) values[i] = static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * scale;
}

bool to_q8_0(const float* values, Byte* block) {
  float largest = 0;
  for (int i = 0; i < kShort; ++i) largest = std::max(largest, std::abs(values[i]));
  const float scale = largest / 127, inverse = scale == 0 ? 0 : 1 / scale;
  const float factor = std::isfinite(inverse) ? inverse : 0;  // where the scale itself is too small for a half
  for (int i = 0; i < kShort; ++i) block[2 + i] = static_cast<Byte>(static_cast<int>(std::round(values[i] * factor)));
  return put_half(scale, block);
}

struct PartScale {
  float scale;
  float least;
};

/// Of the `part`-th 32 values of a Q4_K or Q5_K block: six bits each. Those of parts 4 to 7 have their upper two bits
/// at the top of the bytes of parts 0 to 3.
PartScale part_scale(const Byte* block, int part) {
  const Byte* bytes = block + 4;
  const bool low = part < 4;
  const int scale = low ? bytes[part] & 63 : (bytes[part + 4] & 15) | (bytes[part - 4] >> 2 & 48);
  const int least = low ? bytes[part + 4] & 63 : bytes[part + 4] >> 4 | (bytes[part] >> 2 & 48);
  return {half(block) * static_cast<float>(scale), half(block + 2) * static_cast<float>(least)};
}

/// The i-th number of four bits of part `part`: parts alternate between the low and the high halves of 32 bytes.
int part_bits(const Byte* bytes, int part, int i) { return bytes[part / 2 * 32 + i] >> (part % 2 * 4) & 15; }

void q4_k(const Byte* block, float* values) {
  const Byte* numbers = block + 4 + kScales;
  for (int part = 0; part < kLong / 32; ++part) {
    const auto [scale, least] = part_scale(block, part);
    for (int i = 0; i < 32; ++i) *values++ = scale * static_cast<float>(part_bits(numbers, part, i)) - least;
  }
}

void q5_k(const Byte* block, float* values) {
  const Byte *fifth = block + 4 + kScales, *numbers = fifth + kLong / 8;
  for (int part = 0; part < kLong / 32; ++part) {
    const auto [scale, least] = part_scale(block, part);
    for (int i = 0; i < 32; ++i) {
      const int number = part_bits(numbers, part, i) | (fifth[i] >> part & 1) << 4;
      *values++ = scale * static_cast<float>(number) - least;
    }
  }
}

/// Four bits of each number, two more of each, a scale for each 16, one scale for all.
void q6_k(const Byte* block, float* values) {
  const Byte *low = block, *high = low + kLong / 2, *scales = high + kLong / 4;
  const float whole = half(scales + kLong / 16);
  for (int i = 0; i < kLong; ++i) {
    const int side = i / 128, quarter = i % 128 / 32, at = i % 32;
    const int four = low[side * 64 + quarter % 2 * 32 + at] >> (quarter / 2 * 4) & 15;
    const int two = high[side * 32 + at] >> (quarter * 2) & 3;
    const float scale = whole * static_cast<float>(static_cast<std::int8_t>(scales[i / 16]));
    values[i] = scale * static_cast<float>((four | two << 4) - 32);
  }
}

constexpr GgufBlockType kTypes[] = {
    {.number = 0, .name = "F32", .values = 1, .bytes = 4, .dequantize = f32, .quantize = to_f32},
    {.number = 1, .name = "F16", .values = 1, .bytes = 2, .dequantize = f16, .quantize = to_f16},
    {.number = 30, .name = "BF16", .values = 1, .bytes = 2, .dequantize = bf16, .quantize = to_bf16},
    {.number = 2, .name = "Q4_0", .values = kShort, .bytes = 18, .dequantize = q4_0},
    {.number = 3, .name = "Q4_1", .values = kShort, .bytes = 20, .dequantize = q4_1},
    {.number = 6, .name = "Q5_0", .values = kShort, .bytes = 22, .dequantize = q5_0},
    {.number = 7, .name = "Q5_1", .values = kShort, .bytes = 24, .dequantize = q5_1},
    {.number = 8, .name = "Q8_0", .values = kShort, .bytes = 34, .dequantize = q8_0, .quantize = to_q8_0},
    {.number = 12, .name = "Q4_K", .values = kLong, .bytes = 144, .dequantize = q4_k},
    {.number = 13, .name = "Q5_K", .values = kLong, .bytes = 176, .dequantize = q5_k},
    {.number = 14, .name = "Q6_K", .values = kLong, .bytes = 210, .dequantize = q6_k},
};

/// Types that are not read, for messages.
struct OtherType {
  std::uint32_t number;
  std::string_view name;
};
constexpr OtherType kOthers[] = {
    {9, "Q8_1"},   {10, "Q2_K"},   {11, "Q3_K"},  {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
    {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"}, {23, "IQ4_XS"},  {24, "I8"},     {25, "I16"},
    {26, "I32"},   {27, "I64"},    {28, "F64"},   {29, "IQ1_M"}, {34, "TQ1_0"},   {35, "TQ2_0"},  {39, "MXFP4"}};

}  // namespace

const GgufBlockType* find_gguf_block_type(std::uint32_t number) {
  for (const GgufBlockType& type : kTypes)
    if (type.number == number) return &type;
  return nullptr;
}

const GgufBlockType& gguf_block_type(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& type) { return type.name == name; });
  CARNOT_CHECK(found != std::end(kTypes), std::string(name));
  return *found;
}

std::string gguf_type_name(std::uint32_t number) {
  if (const GgufBlockType* type = find_gguf_block_type(number)) return std::string(type->name);
  for (const OtherType& other : kOthers)
    if (other.number == number) return std::string(other.name);
  return "type " + std::to_string(number);
}

std::string gguf_types_read() {
  std::string names;
  for (const GgufBlockType& type : kTypes) names.append(names.empty() ? "" : ", ").append(type.name);
  return names;
}

void dequantize(const GgufBlockType& type, std::string_view blocks, std::span<float> values) {
  const auto bytes = static_cast<std::size_t>(type.bytes), width = static_cast<std::size_t>(type.values);
  CARNOT_CHECK_EQ(blocks.size() % bytes, 0u);
  CARNOT_CHECK_EQ(blocks.size() / bytes * width, values.size());
  const auto* block = reinterpret_cast<const Byte*>(blocks.data());
  for (std::size_t i = 0; i < blocks.size() / bytes; ++i) type.dequantize(block + i * bytes, values.data() + i * width);
}

bool quantize(const GgufBlockType& type, std::span<const float> values, std::string& blocks) {
  const auto bytes = static_cast<std::size_t>(type.bytes), width = static_cast<std::size_t>(type.values);
  CARNOT_CHECK_EQ(values.size() % width, 0u);
  const std::size_t begin = blocks.size();
  blocks.resize(begin + values.size() / width * bytes);
  auto* block = reinterpret_cast<Byte*>(blocks.data() + begin);
  bool fits = true;
  for (std::size_t i = 0; i < values.size() / width; ++i)
    fits = type.quantize(values.data() + i * width, block + i * bytes) && fits;
  return fits;
}

}  // namespace carnot
