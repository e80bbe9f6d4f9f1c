#include "carnot/core/gguf/metadata.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "carnot/core/base/limits.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/gguf/little_endian.h"

namespace carnot {
namespace {

/// Nothing if the kind is no integer, or the number beyond 63 bits.
std::optional<std::int64_t> integer_of(GgufKind kind, std::string_view bytes) {
  switch (kind) {
    case GgufKind::Uint8: return from_little_endian<std::uint8_t>(bytes);
    case GgufKind::Int8: return from_little_endian<std::int8_t>(bytes);
    case GgufKind::Uint16: return from_little_endian<std::uint16_t>(bytes);
    case GgufKind::Int16: return from_little_endian<std::int16_t>(bytes);
    case GgufKind::Uint32: return from_little_endian<std::uint32_t>(bytes);
    case GgufKind::Int32: return from_little_endian<std::int32_t>(bytes);
    case GgufKind::Int64: return from_little_endian<std::int64_t>(bytes);
    case GgufKind::Uint64: {
      const auto value = from_little_endian<std::uint64_t>(bytes);
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return {};
      return static_cast<std::int64_t>(value);
    }
    default: return {};
  }
}

std::optional<double> number_of(GgufKind kind, std::string_view bytes) {
  if (kind == GgufKind::Float64) return from_little_endian<double>(bytes);
  if (kind != GgufKind::Float32) return {};
  char digits[32];
  const char* end = std::to_chars(digits, std::end(digits), from_little_endian<float>(bytes)).ptr;
  double value = 0;
  std::from_chars(digits, end, value);
  return value;
}

bool is_text(std::string_view bytes) { return valid_prefix(bytes) == bytes.size(); }

/// The elements of an array of numbers, each read by `read`; nothing if one cannot be.
template <class Number, class Read>
std::optional<std::vector<Number>> elements_of(const GgufValue& array, const Read& read) {
  const std::size_t size = gguf_kind_size(array.element);
  if (size == 0) return {};
  std::vector<Number> values;
  values.reserve(array.count);
  for (std::uint64_t i = 0; i < array.count; ++i) {
    const std::optional<Number> value = read(array.element, array.bytes.substr(i * size, size));
    if (!value) return {};
    values.push_back(*value);
  }
  return values;
}

}  // namespace

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = file_->values.find(key);
  return found == file_->values.end() ? nullptr : &found->second;
}

const GgufValue* GgufMetadata::find_array(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return nullptr;
  if (value->kind != GgufKind::Array)
    problem(key, "expected an array");
  else if (value->count > static_cast<std::uint64_t>(kMaxTokenId) + 1)
    problem(key,
            "has " + std::to_string(value->count) + " elements; expected at most " + std::to_string(kMaxTokenId + 1));
  else
    return value;
  return nullptr;
}

std::optional<std::int64_t> GgufMetadata::integer(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  const auto read = integer_of(value->kind, value->bytes);
  if (!read) problem(key, "expected one integer");
  return read;
}

std::optional<double> GgufMetadata::number(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  const auto read = number_of(value->kind, value->bytes);
  if (read && std::isfinite(*read)) return read;
  problem(key, "expected one finite number of the kind float32 or float64");
  return {};
}

std::optional<bool> GgufMetadata::flag(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  if (value->kind == GgufKind::Bool) return value->bytes[0] != 0;
  problem(key, "expected true or false");
  return {};
}

std::optional<std::string> GgufMetadata::text(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  if (value->kind == GgufKind::String && is_text(value->bytes)) return std::string(value->bytes);
  problem(key, "expected a string in UTF-8");
  return {};
}

std::optional<std::vector<std::string_view>> GgufMetadata::texts(std::string_view key) {
  const GgufValue* array = find_array(key);
  if (array == nullptr) return {};
  if (array->element != GgufKind::String) {
    problem(key, "expected an array of texts");
    return {};
  }
  std::vector<std::string_view> texts;
  texts.reserve(array->count);
  std::string_view rest = array->bytes;
  for (std::uint64_t i = 0; i < array->count; ++i) {
    const auto size = from_little_endian<std::uint64_t>(rest);
    texts.push_back(rest.substr(sizeof size, size));
    rest.remove_prefix(sizeof size + size);
    if (is_text(texts.back())) continue;
    problem(key, "element " + std::to_string(i) + " is not UTF-8");
    return {};
  }
  return texts;
}

std::optional<std::vector<std::int64_t>> GgufMetadata::integers(std::string_view key) {
  const GgufValue* array = find_array(key);
  if (array == nullptr) return {};
  auto values = elements_of<std::int64_t>(*array, integer_of);
  if (!values) problem(key, "expected an array of integers");
  return values;
}

std::optional<std::vector<double>> GgufMetadata::numbers(std::string_view key) {
  const GgufValue* array = find_array(key);
  if (array == nullptr) return {};
  auto values = elements_of<double>(*array, number_of);
  if (!values) problem(key, "expected an array of numbers of the kind float32 or float64");
  return values;
}

std::optional<std::vector<bool>> GgufMetadata::flags(std::string_view key) {
  const GgufValue* array = find_array(key);
  if (array == nullptr) return {};
  if (array->element == GgufKind::Bool) {
    std::vector<bool> flags;
    for (const char byte : array->bytes) flags.push_back(byte != 0);
    return flags;
  }
  problem(key, "expected an array of true and false");
  return {};
}

void GgufMetadata::require(std::string_view key) {
  if (!has(key)) problem(key, "is missing");
}

void GgufMetadata::problem(std::string_view key, const std::string& what) {
  if (problems_.size() < kMaxProblems) problems_.push_back(name_ + ": " + std::string(key) + ": " + what);
}

}  // namespace carnot
