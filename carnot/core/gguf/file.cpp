#include "carnot/core/gguf/file.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <set>

#include "carnot/core/base/limits.h"
#include "carnot/core/gguf/little_endian.h"

namespace carnot {
namespace {

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::string_view kAlignment = "general.alignment";

/// The rest of the file; nothing if it ends too early.
class Cursor {
 public:
  explicit Cursor(std::string_view file) : file_(file) {}

  std::size_t position() const { return at_; }
  std::size_t left() const { return file_.size() - at_; }

  std::optional<std::string_view> take(std::uint64_t bytes) {
    if (bytes > left()) return {};
    at_ += bytes;
    return file_.substr(at_ - bytes, bytes);
  }
  template <class Number>
  std::optional<Number> number() {
    const auto bytes = take(sizeof(Number));
    return bytes ? std::optional(from_little_endian<Number>(*bytes)) : std::nullopt;
  }
  std::optional<std::string_view> text() {
    const auto bytes = number<std::uint64_t>();
    return bytes ? take(*bytes) : std::nullopt;
  }

 private:
  std::string_view file_;
  std::size_t at_ = 0;
};

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

/// A tensor before its bytes are known.
struct TensorPlace {
  GgufTensor tensor{};
  std::uint32_t type = 0;
  std::uint64_t begin = 0;  ///< from the beginning of the data
  std::uint64_t bytes = 0;
};

class Parser {
 public:
  Parser(std::string_view file, const std::string& name) : file_(file), cursor_(file), name_(name) {}

  Result<GgufFile> parse() {
    CARNOT_ASSIGN_OR_RETURN(const auto counts, read_head());
    CARNOT_RETURN_IF_ERROR(read_values(counts.values));
    CARNOT_RETURN_IF_ERROR(read_tensors(counts.tensors));
    CARNOT_RETURN_IF_ERROR(place_tensors());
    return std::move(parsed_);
  }

 private:
  struct Counts {
    std::uint64_t tensors = 0;
    std::uint64_t values = 0;
  };

  Error wrong(const std::string& what) const { return Error{name_ + ": " + what}; }
  Error truncated(const std::string& where) const {
    return wrong("truncated: " + std::to_string(file_.size()) + " bytes, and it ends within " + where);
  }

  Result<Counts> read_head() {
    const auto magic = cursor_.take(4);
    if (magic != "GGUF") return wrong("is no GGUF file: it does not begin with \"GGUF\"");
    const auto version = cursor_.number<std::uint32_t>();
    if (!version) return truncated("its head");
    if (*version != 2 && *version != 3) {
      const bool swapped = *version != 0 && (*version & 0xffff) == 0;
      return wrong(swapped ? "is big-endian; expected a little-endian GGUF file"
                           : "has GGUF version " + std::to_string(*version) + "; expected 2 or 3");
    }
    const auto tensors = cursor_.number<std::uint64_t>(), values = cursor_.number<std::uint64_t>();
    if (!tensors || !values) return truncated("its head");
    for (const std::uint64_t count : {*tensors, *values})
      if (count > kMaxGgufEntries)
        return wrong("announces " + std::to_string(*tensors) + " tensors and " + std::to_string(*values) +
                     " keys; at most " + std::to_string(kMaxGgufEntries) + " of each are read");
    return Counts{*tensors, *values};
  }

  Status read_values(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto key = cursor_.text();
      if (!key) return truncated("key " + std::to_string(i));
      CARNOT_ASSIGN_OR_RETURN(const auto value, read_value(*key));
      if (!parsed_.values.emplace(*key, value).second) return wrong("has the key " + quoted(*key) + " twice");
    }
    return Done{};
  }

  Result<GgufKind> read_kind(std::string_view key) {
    const auto number = cursor_.number<std::uint32_t>();
    if (!number) return truncated("the value of " + quoted(key));
    if (*number > static_cast<std::uint32_t>(GgufKind::Float64))
      return wrong("the value of " + quoted(key) + " has the unknown kind " + std::to_string(*number));
    return static_cast<GgufKind>(*number);
  }

  Result<GgufValue> read_value(std::string_view key) {
    CARNOT_ASSIGN_OR_RETURN(const auto kind, read_kind(key));
    if (kind == GgufKind::Array) return read_array(key);
    const auto bytes = kind == GgufKind::String ? cursor_.text() : cursor_.take(gguf_kind_size(kind));
    if (!bytes) return truncated("the value of " + quoted(key));
    return GgufValue{.kind = kind, .element = kind, .bytes = *bytes};
  }

  Result<GgufValue> read_array(std::string_view key) {
    CARNOT_ASSIGN_OR_RETURN(const auto element, read_kind(key));
    if (element == GgufKind::Array) return wrong("the value of " + quoted(key) + " is an array of arrays");
    const auto count = cursor_.number<std::uint64_t>();
    const bool strings = element == GgufKind::String;
    const std::size_t least = strings ? sizeof(std::uint64_t) : gguf_kind_size(element);
    if (!count || *count > cursor_.left() / least) return truncated("the value of " + quoted(key));
    const std::size_t begin = cursor_.position();
    bool whole = true;
    if (strings)
      for (std::uint64_t i = 0; whole && i < *count; ++i) whole = cursor_.text().has_value();
    else
      whole = cursor_.take(*count * least).has_value();
    if (!whole) return truncated("the value of " + quoted(key));
    return GgufValue{.kind = GgufKind::Array,
                     .element = element,
                     .count = *count,
                     .bytes = file_.substr(begin, cursor_.position() - begin)};
  }

  Status read_tensors(std::uint64_t count) {
    std::set<std::string_view> names;
    std::map<std::uint32_t, std::vector<std::string_view>> unread;
    for (std::uint64_t i = 0; i < count; ++i) {
      CARNOT_ASSIGN_OR_RETURN(auto place, read_tensor(i));
      if (!names.insert(place.tensor.name).second)
        return wrong("has the tensor " + quoted(place.tensor.name) + " twice");
      if (place.tensor.type == nullptr) unread[place.type].push_back(place.tensor.name);
      places_.push_back(std::move(place));
    }
    if (unread.empty()) return Done{};
    std::vector<std::string> problems;
    for (const auto& [type, tensors] : unread) {
      if (problems.size() == kMaxProblems) break;
      const std::string others =
          tensors.size() == 1 ? "" : " and " + std::to_string(tensors.size() - 1) + " more tensors";
      problems.push_back(name_ + ": " + quoted(tensors[0]) + others + ": numbers of " + gguf_type_name(type) +
                         " are not read; expected " + gguf_types_read());
    }
    return join_errors(problems);
  }

  Result<TensorPlace> read_tensor(std::uint64_t index) {
    const auto name = cursor_.text();
    const auto dimensions = cursor_.number<std::uint32_t>();
    if (!name || !dimensions) return truncated("the head of tensor " + std::to_string(index));
    const std::string tensor = "tensor " + quoted(*name);
    if (*dimensions > kMaxGgufDimensions)
      return wrong(tensor + " has " + std::to_string(*dimensions) + " dimensions; at most " +
                   std::to_string(kMaxGgufDimensions) + " are read");
    TensorPlace place{.tensor = {.name = *name}};
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    std::uint64_t values = 1, columns = 1;
    for (std::uint32_t i = 0; i < *dimensions; ++i) {
      const auto size = cursor_.number<std::uint64_t>();
      if (!size) return truncated("the head of " + tensor);
      if (*size == 0 || values > kMost / *size) return wrong(tensor + " has an impossible shape");
      values *= *size;
      if (i == 0) columns = *size;
      place.tensor.shape.insert(place.tensor.shape.begin(), static_cast<std::int64_t>(*size));
    }
    const auto type = cursor_.number<std::uint32_t>();
    const auto begin = cursor_.number<std::uint64_t>();
    if (!type || !begin) return truncated("the head of " + tensor);
    place.type = *type;
    place.begin = *begin;
    place.tensor.type = find_gguf_block_type(*type);
    if (place.tensor.type == nullptr) return place;
    const auto width = static_cast<std::uint64_t>(place.tensor.type->values);
    const auto bytes = static_cast<std::uint64_t>(place.tensor.type->bytes);
    if (columns % width != 0)
      return wrong(tensor + ": rows of " + std::to_string(columns) + " numbers are no whole blocks of " +
                   std::string(place.tensor.type->name));
    if (values / width > kMost / bytes) return wrong(tensor + " has an impossible shape");
    place.bytes = values / width * bytes;
    return place;
  }

  Result<std::uint64_t> alignment() const {
    const auto found = parsed_.values.find(kAlignment);
    if (found == parsed_.values.end()) return kDefaultAlignment;
    const GgufValue& value = found->second;
    const std::uint64_t given = value.kind == GgufKind::Uint32 ? from_little_endian<std::uint32_t>(value.bytes) : 0;
    if (given > kMaxGgufAlignment || !std::has_single_bit(given))
      return wrong(std::string(kAlignment) + ": expected a power of two of the kind uint32, at most " +
                   std::to_string(kMaxGgufAlignment));
    return given;
  }

  Status place_tensors() {
    const auto step = alignment();
    if (!step) return step.error();
    const std::uint64_t begin = (cursor_.position() + *step - 1) / *step * *step;
    const std::uint64_t size = file_.size() > begin ? file_.size() - begin : 0;
    std::sort(places_.begin(), places_.end(),
              [](const TensorPlace& a, const TensorPlace& b) { return a.begin < b.begin; });
    std::uint64_t covered = 0;
    for (TensorPlace& place : places_) {
      const std::string tensor = "tensor " + quoted(place.tensor.name);
      if (place.begin > size || place.bytes > size - place.begin)
        return wrong(tensor + ": " + std::to_string(place.bytes) + " bytes at " + std::to_string(place.begin) +
                     " do not lie in the file, which holds " + std::to_string(size) + " bytes of data");
      if (place.begin % *step != 0) return wrong(tensor + " is not aligned to " + std::to_string(*step) + " bytes");
      if (place.begin < covered) return wrong(tensor + " begins inside the tensor before it");
      covered = place.begin + place.bytes;
      place.tensor.bytes = file_.substr(begin + place.begin, place.bytes);
      parsed_.tensors.push_back(std::move(place.tensor));
    }
    return Done{};
  }

  std::string_view file_;
  Cursor cursor_;
  std::string name_;
  GgufFile parsed_{};
  std::vector<TensorPlace> places_{};
};

}  // namespace

std::size_t gguf_kind_size(GgufKind kind) {
  switch (kind) {
    case GgufKind::Uint8:
    case GgufKind::Int8:
    case GgufKind::Bool: return 1;
    case GgufKind::Uint16:
    case GgufKind::Int16: return 2;
    case GgufKind::Uint32:
    case GgufKind::Int32:
    case GgufKind::Float32: return 4;
    case GgufKind::Uint64:
    case GgufKind::Int64:
    case GgufKind::Float64: return 8;
    case GgufKind::String:
    case GgufKind::Array: return 0;
  }
  return 0;
}

Result<GgufFile> parse_gguf(std::string_view file, const std::string& name) { return Parser(file, name).parse(); }

}  // namespace carnot
