#include "carnot/core/gguf/writer.h"

#include <numeric>

#include "carnot/core/base/file.h"
#include "carnot/core/gguf/file.h"
#include "carnot/core/gguf/little_endian.h"

namespace carnot {
namespace {

constexpr std::uint64_t kTensorAlignment = 32;
constexpr std::size_t kPieceBytes = 1 << 20;

std::int64_t rows_of(const GgufPendingTensor& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end() - 1, std::int64_t{1}, std::multiplies());
}

std::uint64_t bytes_of(const GgufPendingTensor& tensor) {
  const auto blocks = static_cast<std::uint64_t>(tensor.shape.back() / tensor.type->values);
  return static_cast<std::uint64_t>(rows_of(tensor)) * blocks * static_cast<std::uint64_t>(tensor.type->bytes);
}

std::uint64_t aligned(std::uint64_t place) {
  return (place + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

/// What precedes the tensors' numbers.
class Head {
 public:
  Head(const GgufSettings& settings, const std::vector<GgufPendingTensor>& tensors) {
    bytes_ = "GGUF";
    number(std::uint32_t{3});
    number(static_cast<std::uint64_t>(tensors.size()));
    number(static_cast<std::uint64_t>(settings.size()));
    for (const auto& [key, setting] : settings) {
      add(key);
      std::visit([&](const auto& value) { typed(value); }, setting);
    }
    std::uint64_t begin = 0;
    for (const GgufPendingTensor& tensor : tensors) {
      add(tensor.name);
      number(static_cast<std::uint32_t>(tensor.shape.size()));
      for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) number(*size);
      number(tensor.type->number);
      number(begin);
      begin = aligned(begin + bytes_of(tensor));
    }
    bytes_.resize(aligned(bytes_.size()));
  }

  std::string take() && { return std::move(bytes_); }

 private:
  template <class Number>
  void number(Number value) {
    const auto bytes = to_little_endian(value);
    bytes_.append(bytes.data(), bytes.size());
  }
  void kind(GgufKind kind) { number(static_cast<std::uint32_t>(kind)); }

  void add(const std::string& text) {
    number(static_cast<std::uint64_t>(text.size()));
    bytes_ += text;
  }
  void add(std::uint32_t value) { number(value); }
  void add(std::int32_t value) { number(value); }
  void add(float value) { number(value); }
  void add(bool value) { number(value); }

  static GgufKind kind_of(const std::string&) { return GgufKind::String; }
  static GgufKind kind_of(std::uint32_t) { return GgufKind::Uint32; }
  static GgufKind kind_of(std::int32_t) { return GgufKind::Int32; }
  static GgufKind kind_of(float) { return GgufKind::Float32; }
  static GgufKind kind_of(bool) { return GgufKind::Bool; }

  template <class Value>
  void typed(const Value& value) {
    kind(kind_of(value));
    add(value);
  }
  template <class Value>
  void typed(const std::vector<Value>& values) {
    kind(GgufKind::Array);
    kind(kind_of(Value()));
    number(static_cast<std::uint64_t>(values.size()));
    for (const Value& value : values) add(value);
  }

  std::string bytes_;
};

Status write_tensor(const GgufPendingTensor& tensor, const PieceWriter& write) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape.back()));
  std::string piece;
  for (std::int64_t row = 0; row < rows_of(tensor); ++row) {
    tensor.read_row(row, values);
    if (!quantize(*tensor.type, values, piece))
      return Error{"tensor '" + tensor.name + "' has numbers that are too large for " + std::string(tensor.type->name)};
    if (piece.size() < kPieceBytes) continue;
    CARNOT_RETURN_IF_ERROR(write(piece));
    piece.clear();
  }
  piece.resize(piece.size() + aligned(bytes_of(tensor)) - bytes_of(tensor));
  return write(piece);
}

}  // namespace

Status write_gguf(const std::filesystem::path& path, const GgufSettings& settings,
                  const std::vector<GgufPendingTensor>& tensors) {
  return write_file_atomically(path, [&](const PieceWriter& write) -> Status {
    CARNOT_RETURN_IF_ERROR(write(Head(settings, tensors).take()));
    for (const GgufPendingTensor& tensor : tensors) CARNOT_RETURN_IF_ERROR(write_tensor(tensor, write));
    return Done{};
  });
}

}  // namespace carnot
