#include "carnot/core/hf/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "carnot/core/base/json.h"
#include "carnot/core/base/limits.h"

namespace carnot {
namespace {

constexpr std::uint64_t kLengthBytes = 8;

struct DtypeSize {
  std::string_view name;
  int bytes;
};
constexpr DtypeSize kDtypeSizes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"I16", 2}, {"F16", 2},
                                     {"BF16", 2}, {"I32", 4}, {"F32", 4}, {"I64", 8}, {"F64", 8}};

/// Problems of one file, each after its name; a corrupt header does not fill the terminal.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  void add(const std::string& what) {
    if (++count_ <= kMaxProblems) texts_.push_back(file_ + ": " + what);
  }
  bool none() const { return count_ == 0; }
  Error error() {
    if (count_ > kMaxProblems) texts_.push_back(file_ + ": and " + std::to_string(count_ - kMaxProblems) + " more");
    return join_errors(texts_);
  }

 private:
  std::string file_;
  std::vector<std::string> texts_;
  std::size_t count_ = 0;
};

std::string in_quotes(std::string_view name) { return "'" + std::string(name) + "'"; }

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

void read_metadata(const OrderedJson& value, std::map<std::string, std::string>& metadata, Problems& problems) {
  if (!value.is_object()) return problems.add("__metadata__ is not an object");
  for (const auto& [key, text] : value.items()) {
    if (text.is_string())
      metadata[key] = text.get<std::string>();
    else
      problems.add("__metadata__ " + in_quotes(key) + " is not a string");
  }
}

/// Elements of the shape; nothing if it is not a list of sizes or the bytes overflow.
bool read_shape(const OrderedJson& value, int bytes_per_element, std::vector<std::int64_t>& shape,
                std::uint64_t& bytes) {
  if (!value.is_array()) return false;
  bytes = static_cast<std::uint64_t>(bytes_per_element);
  for (const OrderedJson& size : value) {
    if (!size.is_number_unsigned()) return false;
    const auto n = size.get<std::uint64_t>();
    constexpr auto kLimit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (n > kLimit || (n > 0 && bytes > kLimit / n)) return false;
    bytes *= n;
    shape.push_back(static_cast<std::int64_t>(n));
  }
  return true;
}

/// Reads one entry; its offsets still count from the end of the header.
void read_entry(const std::string& name, const OrderedJson& value, std::uint64_t data_size, SafetensorsHeader& header,
                Problems& problems) {
  const std::string tensor = "tensor " + in_quotes(name);
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets"))
    return problems.add(tensor + " needs exactly dtype, shape and data_offsets");
  TensorEntry entry{.name = name};
  if (!value["dtype"].is_string()) return problems.add(tensor + ": dtype is not a string");
  entry.dtype = value["dtype"].get<std::string>();
  const int bytes_per_element = element_size(entry.dtype);
  if (bytes_per_element == 0) return problems.add(tensor + ": dtype " + in_quotes(entry.dtype) + " is not read");
  std::uint64_t bytes = 0;
  if (!read_shape(value["shape"], bytes_per_element, entry.shape, bytes))
    return problems.add(tensor + ": shape " + value["shape"].dump() + " is not a list of possible sizes");

  const OrderedJson& offsets = value["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    return problems.add(tensor + ": data_offsets " + offsets.dump() + " are not two positions");
  entry.begin = offsets[0].get<std::uint64_t>();
  entry.end = offsets[1].get<std::uint64_t>();
  if (entry.begin > entry.end || entry.end > data_size)
    return problems.add(tensor + ": data_offsets " + offsets.dump() + " do not lie in the file, which holds " +
                        std::to_string(data_size) + " bytes of data");
  if (entry.end - entry.begin != bytes)
    return problems.add(tensor + ": " + std::to_string(entry.end - entry.begin) + " bytes, but its shape needs " +
                        std::to_string(bytes));
  header.entries.push_back(std::move(entry));
}

/// Tensors must cover the data one after the other: no holes, no overlaps, nothing after the last.
void check_coverage(const std::vector<TensorEntry>& entries, std::uint64_t data_size, Problems& problems) {
  std::uint64_t covered = 0;
  for (const TensorEntry& entry : entries) {
    if (entry.begin != covered)
      problems.add("tensor " + in_quotes(entry.name) + " begins at byte " + std::to_string(entry.begin) +
                   " of the data, " + (entry.begin < covered ? "inside the tensor before it" : "after a gap") +
                   "; expected " + std::to_string(covered));
    covered = std::max(covered, entry.end);
  }
  if (covered != data_size)
    problems.add("tensors end at byte " + std::to_string(covered) + " of the data, the file at " +
                 std::to_string(data_size));
}

}  // namespace

int element_size(std::string_view dtype) {
  for (const DtypeSize& known : kDtypeSizes)
    if (known.name == dtype) return known.bytes;
  return 0;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view file, const std::string& name) {
  if (file.size() < kLengthBytes)
    return Error{name + ": " + std::to_string(file.size()) + " bytes, too short for a .safetensors file"};
  const std::uint64_t length = little_endian(file);
  if (length > kMaxSafetensorsHeader)
    return Error{name + ": header of " + std::to_string(length) + " bytes, at most " +
                 std::to_string(kMaxSafetensorsHeader) + " are allowed"};
  if (length > file.size() - kLengthBytes)
    return Error{name + ": truncated: a header of " + std::to_string(length) + " bytes in a file of " +
                 std::to_string(file.size())};
  const std::string_view text = file.substr(kLengthBytes, length);
  if (!text.starts_with('{')) return Error{name + ": the header is not a JSON object"};

  Problems problems(name);
  CARNOT_ASSIGN_OR_RETURN(const auto json, parse_json_object<OrderedJson>(text, name + ": header"));
  const std::uint64_t data_begin = kLengthBytes + length, data_size = file.size() - data_begin;
  SafetensorsHeader header;
  for (const auto& [key, value] : json.items()) {
    if (key == "__metadata__")
      read_metadata(value, header.metadata, problems);
    else
      read_entry(key, value, data_size, header, problems);
  }
  std::sort(header.entries.begin(), header.entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  if (problems.none()) check_coverage(header.entries, data_size, problems);
  if (!problems.none()) return problems.error();
  for (TensorEntry& entry : header.entries) {
    entry.begin += data_begin;
    entry.end += data_begin;
  }
  return header;
}

Result<std::map<std::string, std::string>> parse_weight_map(std::string_view text, const std::string& name) {
  CARNOT_ASSIGN_OR_RETURN(const auto json, parse_json_object<OrderedJson>(text, name));
  const auto listed = json.find("weight_map");
  if (listed == json.end() || !listed->is_object()) return Error{name + ": expected a JSON object with a weight_map"};
  std::map<std::string, std::string> file_of;
  for (const auto& [tensor, value] : listed->items()) {
    const std::string file = value.is_string() ? value.get<std::string>() : std::string();
    const bool plain = !file.empty() && file != "." && file != ".." &&
                       file.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
    if (!plain) return Error{name + ": weight_map " + in_quotes(tensor) + " does not name a file of this folder"};
    file_of[tensor] = file;
  }
  return file_of;
}

std::string safetensors_header_bytes(const SafetensorsHeader& header) {
  OrderedJson json = OrderedJson::object();
  if (!header.metadata.empty()) json["__metadata__"] = header.metadata;
  for (const TensorEntry& entry : header.entries)
    json[entry.name] = {{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
  std::string text = json.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string bytes;
  for (std::size_t i = 0; i < kLengthBytes; ++i) bytes += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return bytes + text;
}

}  // namespace carnot
