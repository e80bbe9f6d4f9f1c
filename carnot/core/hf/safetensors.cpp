#include "carnot/core/hf/safetensors.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/hf/safetensors_header.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

struct DtypeName {
  std::string_view name;
  at::ScalarType dtype;
};
constexpr DtypeName kDtypes[] = {{"BOOL", at::kBool}, {"U8", at::kByte},       {"I8", at::kChar}, {"I16", at::kShort},
                                 {"F16", at::kHalf},  {"BF16", at::kBFloat16}, {"I32", at::kInt}, {"F32", at::kFloat},
                                 {"I64", at::kLong},  {"F64", at::kDouble}};

at::ScalarType dtype_of(std::string_view name) {
  for (const DtypeName& known : kDtypes)
    if (known.name == name) return known.dtype;
  CARNOT_CHECK(false, "a dtype that the header check lets through");
}

std::string name_of_dtype(at::ScalarType dtype) {
  for (const DtypeName& known : kDtypes)
    if (known.dtype == dtype) return std::string(known.name);
  CARNOT_CHECK(false, std::string("no file type for ") + toString(dtype));
}

at::Tensor tensor_in(const std::shared_ptr<MappedFile>& mapping, const TensorEntry& entry) {
  const at::ScalarType dtype = dtype_of(entry.dtype);
  if (entry.begin == entry.end) return at::empty(entry.shape, dtype);
  // The deleter keeps the mapping alive for as long as any tensor looks into it.
  const at::Tensor shared =
      at::from_blob(mapping->data() + entry.begin, entry.shape, [mapping](void*) {}, at::TensorOptions(dtype));
  const bool aligned = (entry.begin % static_cast<std::uint64_t>(element_size(entry.dtype))) == 0;
  return aligned ? shared : shared.clone();
}

/// No exponent has all bits set, as NaN and infinity have. One pass over the file's memory that copies nothing.
template <class Bits>
bool has_finite_bits(const at::Tensor& tensor, Bits exponent) {
  const auto* bits = static_cast<const Bits*>(tensor.const_data_ptr());
  const std::int64_t count = tensor.numel();
  Bits reached = 0;  // of the widest exponent, without a branch in the loop
  for (std::int64_t i = 0; i < count; ++i) reached = std::max<Bits>(reached, bits[i] & exponent);
  return reached != exponent;
}

bool is_finite(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble: return has_finite_bits<std::uint64_t>(tensor, 0x7ff0'0000'0000'0000);
    case at::kFloat: return has_finite_bits<std::uint32_t>(tensor, 0x7f80'0000);
    case at::kHalf: return has_finite_bits<std::uint16_t>(tensor, 0x7c00);
    case at::kBFloat16: return has_finite_bits<std::uint16_t>(tensor, 0x7f80);
    default: return true;
  }
}

Result<std::map<std::string, std::string>> read_weight_map(const fs::path& index) {
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(index));
  return parse_weight_map(text, index.string());
}

Result<TensorFile> read_shards(const fs::path& folder, const fs::path& index) {
  CARNOT_ASSIGN_OR_RETURN(const auto file_of, read_weight_map(index));
  std::map<std::string, std::vector<NamedTensor>> shards;
  TensorFile all;
  std::vector<std::string> problems;
  for (const auto& [name, file] : file_of)
    if (!shards.contains(file)) {
      auto shard = read_weights(folder / file);
      if (!shard) problems.push_back(shard.error().message);
      shards[file] = shard ? std::move(shard->tensors) : std::vector<NamedTensor>();
      if (shard) all.metadata.merge(shard->metadata);
    }
  if (!problems.empty()) return join_errors(problems);

  for (auto& [file, tensors] : shards)
    for (NamedTensor& tensor : tensors) {
      const auto listed = file_of.find(tensor.name);
      if (listed == file_of.end() || listed->second != file)
        problems.push_back((folder / file).string() + ": holds '" + tensor.name + "', which " +
                           index.filename().string() + " does not place there");
      all.tensors.push_back(std::move(tensor));
    }
  std::map<std::string, int> held;
  for (const NamedTensor& tensor : all.tensors) ++held[tensor.name];
  for (const auto& [name, file] : file_of)
    if (!held.contains(name)) problems.push_back((folder / file).string() + ": lacks '" + name + "'");
  if (!problems.empty()) return join_errors(problems);
  return all;
}

Status write_shard(const fs::path& path, const std::vector<const PendingTensor*>& shard) {
  std::vector<NamedTensor> made;
  for (const PendingTensor* tensor : shard) {
    CARNOT_ASSIGN_OR_RETURN(auto value, tensor->make());
    made.push_back({tensor->name, std::move(value)});
  }
  return write_safetensors(path, made, {{"format", "pt"}});
}

}  // namespace

Result<TensorFile> read_safetensors(const fs::path& path) {
  CARNOT_ASSIGN_OR_RETURN(const auto mapping, MappedFile::open(path));
  CARNOT_ASSIGN_OR_RETURN(auto header, parse_safetensors_header(mapping->bytes(), path.string()));
  TensorFile file{.metadata = std::move(header.metadata)};
  for (const TensorEntry& entry : header.entries)
    file.tensors.push_back({.name = entry.name, .tensor = tensor_in(mapping, entry)});
  return file;
}

Result<TensorFile> read_weights(const fs::path& path) {
  auto file = read_safetensors(path);
  if (!file) return file;
  std::vector<std::string> names;
  for (const NamedTensor& named : file->tensors)
    if (!is_finite(named.tensor)) names.push_back(named.name);
  if (names.empty()) return file;
  const std::string others = names.size() == 1 ? "" : ", and so do " + std::to_string(names.size() - 1) + " more";
  return Error{path.string() + ": tensor '" + names[0] + "' holds NaN or infinite numbers" + others +
               "; expected finite weights"};
}

Result<TensorFile> read_model_tensors(const fs::path& folder) {
  const fs::path single = folder / kWeights, index = folder / kIndex;
  if (fs::exists(single)) return read_weights(single);
  if (fs::exists(index)) return read_shards(folder, index);
  return Error{folder.string() + ": holds neither model.safetensors nor model.safetensors.index.json"};
}

Result<std::vector<std::string>> model_tensor_files(const fs::path& folder) {
  if (fs::exists(folder / kWeights)) return std::vector<std::string>{kWeights};
  CARNOT_ASSIGN_OR_RETURN(const auto file_of, read_weight_map(folder / kIndex));
  std::set<std::string> names{kIndex};
  for (const auto& [name, file] : file_of) names.insert(file);
  return std::vector<std::string>(names.begin(), names.end());
}

Status write_model_tensors(const fs::path& folder, const std::vector<NamedTensor>& tensors, std::int64_t shard_bytes) {
  std::vector<PendingTensor> pending;
  for (const NamedTensor& named : tensors)
    pending.push_back({.name = named.name, .bytes = static_cast<std::int64_t>(named.tensor.nbytes()), .make = [&named] {
                         return Result<at::Tensor>(named.tensor);
                       }});
  return write_model_tensors(folder, pending, shard_bytes);
}

Status write_model_tensors(const fs::path& folder, const std::vector<PendingTensor>& tensors,
                           std::int64_t shard_bytes) {
  std::vector<std::vector<const PendingTensor*>> shards(1);
  std::int64_t total = 0, in_shard = 0;
  for (const PendingTensor& tensor : tensors) {
    if (!shards.back().empty() && in_shard + tensor.bytes > shard_bytes) {
      shards.emplace_back();
      in_shard = 0;
    }
    shards.back().push_back(&tensor);
    in_shard += tensor.bytes;
    total += tensor.bytes;
  }
  if (shards.size() == 1) return write_shard(folder / kWeights, shards[0]);

  Json index{{"metadata", {{"total_size", total}}}, {"weight_map", Json::object()}};
  for (std::size_t i = 0; i < shards.size(); ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    CARNOT_RETURN_IF_ERROR(write_shard(folder / name, shards[i]));
    for (const PendingTensor* tensor : shards[i]) index["weight_map"][tensor->name] = name;
  }
  return write_file_atomically(folder / kIndex, index.dump(2) + "\n");
}

Status write_safetensors(const fs::path& path, const std::vector<NamedTensor>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  std::vector<NamedTensor> sorted = tensors;
  for (NamedTensor& named : sorted) named.tensor = named.tensor.detach().cpu().contiguous();
  std::sort(sorted.begin(), sorted.end(), [](const NamedTensor& a, const NamedTensor& b) {
    return std::pair(-a.tensor.element_size(), a.name) < std::pair(-b.tensor.element_size(), b.name);
  });

  SafetensorsHeader header{.metadata = metadata};
  std::vector<std::string_view> pieces(1);
  std::uint64_t end = 0;
  for (const NamedTensor& named : sorted) {
    CARNOT_CHECK_NE(named.name, "__metadata__");
    CARNOT_CHECK(header.entries.empty() || header.entries.back().name != named.name, named.name + " is given twice");
    const std::uint64_t begin = end;
    end += named.tensor.nbytes();
    header.entries.push_back({.name = named.name,
                              .dtype = name_of_dtype(named.tensor.scalar_type()),
                              .shape = named.tensor.sizes().vec(),
                              .begin = begin,
                              .end = end});
    pieces.emplace_back(static_cast<const char*>(named.tensor.const_data_ptr()), named.tensor.nbytes());
  }
  const std::string front = safetensors_header_bytes(header);
  pieces[0] = front;
  return write_file_atomically(path, pieces);
}

}  // namespace carnot
