#include "carnot/core/hf/base_model.h"

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/hf/adapter_folder.h"
#include "carnot/core/hf/safetensors.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 1;

/// Absolute, and without a slash at its end.
fs::path normal(const fs::path& path) {
  const fs::path absolute = fs::absolute(path).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

/// Names of the files that decide which weights a folder contains.
Result<std::vector<std::string>> telling_files(const fs::path& folder) {
  std::vector<std::string> names{"config.json"};
  fs::path weights;  // those of a checkpoint with adapters lie below them
  if (holds_adapters(folder)) {
    for (const char* name : {kAdapterConfigFile, kAdapterWeightsFile})
      names.push_back((fs::path(kAdapterFolder) / name).string());
    if (fs::exists(folder / kBaseModelFile)) {
      names.emplace_back(kBaseModelFile);
      return names;
    }
    weights = kBaseFolder;
  }
  CARNOT_ASSIGN_OR_RETURN(const auto files, model_tensor_files(folder / weights));
  for (const std::string& name : files) names.push_back((weights / name).string());
  return names;
}

bool is_readable(const OrderedJson& json) {
  if (!json.contains("version") || json["version"] != kVersion) return false;
  if (!json.contains("folder") || !json["folder"].is_string()) return false;
  if (!json.contains("sha256") || !json["sha256"].is_object() || json["sha256"].empty()) return false;
  for (const auto& [name, hash] : json["sha256"].items())
    if (!hash.is_string()) return false;
  return true;
}

}  // namespace

Result<BaseModel> base_model_of(const fs::path& folder) {
  BaseModel base{.folder = normal(folder)};
  CARNOT_ASSIGN_OR_RETURN(const auto names, telling_files(base.folder));
  for (const std::string& name : names) {
    CARNOT_ASSIGN_OR_RETURN(const auto hash, sha256_of_file(base.folder / name));
    base.sha256[name] = hash;
  }
  return base;
}

Status check_base_model(const BaseModel& base) {
  std::error_code ignored;
  if (!fs::is_directory(base.folder, ignored))
    return Error{
        base.folder.string() +
        ": is not there any more; expected the weights that the adapters were trained on. Put the folder back, "
        "or a symbolic link to where it is now (eval also takes model.path=..., train with resume_changes=allow)"};
  CARNOT_ASSIGN_OR_RETURN(const auto now, base_model_of(base.folder));
  if (now.sha256 == base.sha256) return Done{};
  std::string changed;
  for (const auto& [name, hash] : base.sha256)
    if (const auto found = now.sha256.find(name); found == now.sha256.end() || found->second != hash)
      changed += (changed.empty() ? "" : ", ") + name;
  if (changed.empty()) changed = "its list of files";
  return Error{base.folder.string() + ": changed since the adapters were trained on it: " + changed +
               "; expected the weights as they were then"};
}

bool is_of_same_run(const BaseModel& base, const fs::path& checkpoint) {
  const fs::path run = normal(checkpoint).parent_path().parent_path();
  return base.folder.lexically_relative(run).begin()->string() != "..";
}

std::string base_model_json(const BaseModel& base, const fs::path& checkpoint) {
  const bool moves_along = is_of_same_run(base, checkpoint);
  const fs::path folder = moves_along ? base.folder.lexically_relative(normal(checkpoint)) : base.folder;
  return OrderedJson{{"version", kVersion}, {"folder", folder.string()}, {"sha256", base.sha256}}.dump(
             2, ' ', false, OrderedJson::error_handler_t::replace) +
         "\n";
}

Result<std::optional<BaseModel>> read_base_model(const fs::path& checkpoint, const fs::path& moved_to) {
  const fs::path path = checkpoint / kBaseModelFile;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::optional<BaseModel>();
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(path));
  CARNOT_ASSIGN_OR_RETURN(const auto parsed, parse_json_object<OrderedJson>(text, path.string()));
  const OrderedJson& json = parsed;
  if (!is_readable(json)) return Error{path.string() + ": expected JSON with version 1, folder and sha256"};
  fs::path folder = normal(checkpoint / json["folder"].get<std::string>());
  if (!moved_to.empty() && !fs::exists(folder, ignored)) folder = normal(moved_to);
  return std::optional(BaseModel{.folder = folder, .sha256 = json["sha256"].get<std::map<std::string, std::string>>()});
}

}  // namespace carnot
