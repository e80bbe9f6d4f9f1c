#include "carnot/train/checkpoint_folder.h"

#include <algorithm>
#include <charconv>

#include "carnot/base/file.h"
#include "carnot/base/json.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kManifest[] = "MANIFEST.json";
constexpr char kPointer[] = "latest_checkpointed_iteration.txt";
constexpr std::string_view kPrefix = "global_step_";
constexpr int kManifestVersion = 1;

Status failure(const fs::path& path, const std::string& what, const std::error_code& reason) {
  return Error{path.string() + ": " + what + ": " + reason.message()};
}

Status remove_folder(const fs::path& path) {
  std::error_code reason;
  fs::remove_all(path, reason);
  return reason ? failure(path, "cannot remove", reason) : Status(Done{});
}

Status rename_folder(const fs::path& from, const fs::path& to) {
  std::error_code reason;
  fs::rename(from, to, reason);
  return reason ? failure(from, "cannot rename to " + to.string(), reason) : Status(Done{});
}

Status write_files(const fs::path& folder, std::int64_t step, std::span<const CheckpointFile> files) {
  Json listed = Json::object();
  for (const CheckpointFile& file : files) {
    const fs::path path = folder / file.name;
    if (const Status made = make_folder(path.parent_path()); !made) return made;
    if (const Status written = file.write(path); !written) return written;
    for (const fs::path& changed : {path, path.parent_path()})
      if (const Status synced = sync_path(changed); !synced) return synced;
    const auto digest = sha256_of_file(path);
    if (!digest) return digest.error();
    std::error_code reason;
    const auto size = fs::file_size(path, reason);
    if (reason) return failure(path, "cannot read its size", reason);
    listed[file.name] = {{"size", size}, {"sha256", *digest}};
  }
  const Json manifest = {{"version", kManifestVersion}, {"step", step}, {"files", listed}};
  return write_file_atomically(folder / kManifest, manifest.dump(2) + "\n");
}

/// Steps that have a folder, the earliest first.
Result<std::vector<std::int64_t>> steps_in(const fs::path& checkpoints) {
  std::vector<std::int64_t> steps;
  std::error_code reason;
  if (!fs::exists(checkpoints, reason)) return steps;
  fs::directory_iterator entries(checkpoints, reason);
  for (; !reason && entries != fs::directory_iterator(); entries.increment(reason)) {
    const std::string name = entries->path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    std::int64_t step = 0;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
    if (error == std::errc() && stop == end) steps.push_back(step);
  }
  if (reason) return Error{checkpoints.string() + ": cannot list: " + reason.message()};
  std::sort(steps.begin(), steps.end());
  return steps;
}

/// Empty, or what is wrong with one file of a manifest.
std::string file_problem(const fs::path& path, const Json& entry) {
  const bool readable = entry.is_object() && entry.contains("size") && entry["size"].is_number_unsigned() &&
                        entry.contains("sha256") && entry["sha256"].is_string();
  if (!readable) return path.string() + ": its entry in " + kManifest + " has no size and sha256";
  std::error_code reason;
  const auto size = fs::file_size(path, reason);
  if (reason) return path.string() + ": missing: " + reason.message();
  const auto expected = entry["size"].get<std::uintmax_t>();
  if (size != expected)
    return path.string() + ": has " + std::to_string(size) + " bytes, expected " + std::to_string(expected);
  const auto digest = sha256_of_file(path);
  if (!digest) return digest.error().message;
  if (*digest != entry["sha256"].get<std::string>())
    return path.string() + ": its content changed since it was written";
  return "";
}

}  // namespace

fs::path checkpoint_path(const fs::path& checkpoints, std::int64_t step) {
  return checkpoints / (std::string(kPrefix) + std::to_string(step));
}

Status replace_folder(const fs::path& path, const std::function<Status(const fs::path&)>& fill) {
  const fs::path temporary = path.parent_path() / ("." + path.filename().string() + ".tmp");
  const fs::path replaced = path.parent_path() / ("." + path.filename().string() + ".old");
  for (const fs::path& leftover : {temporary, replaced})
    if (const Status removed = remove_folder(leftover); !removed) return removed;
  if (const Status made = make_folder(temporary); !made) return made;

  Status status = fill(temporary);
  if (status) status = sync_path(temporary);
  std::error_code ignored;
  if (status && fs::exists(path, ignored)) status = rename_folder(path, replaced);
  if (status) status = rename_folder(temporary, path);
  if (!status) {
    (void)remove_folder(temporary);  // the reason of the failure is what the user needs
    return status;
  }
  if (const Status synced = sync_path(path.parent_path()); !synced) return synced;
  return remove_folder(replaced);
}

Status write_checkpoint(const fs::path& checkpoints, std::int64_t step, std::span<const CheckpointFile> files) {
  const Status written = replace_folder(checkpoint_path(checkpoints, step),
                                        [&](const fs::path& folder) { return write_files(folder, step, files); });
  if (!written) return written;
  return write_file_atomically(checkpoints / kPointer, std::to_string(step) + "\n");
}

Status verify_checkpoint(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kManifest;
  const auto text = read_file(path);
  if (!text) return text.error();
  const auto manifest = parse_json_object<Json>(*text, path.string());
  if (!manifest) return Error{manifest.error().message + "; it is damaged"};
  const bool readable = manifest->contains("files") && manifest->at("files").is_object();
  if (!readable) return Error{path.string() + ": damaged: expected JSON with an object `files`"};
  std::vector<std::string> problems;
  for (const auto& [name, entry] : manifest->at("files").items()) {
    std::string problem = file_problem(checkpoint / name, entry);
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

Result<std::optional<FoundCheckpoint>> latest_checkpoint(const fs::path& checkpoints) {
  const auto steps = steps_in(checkpoints);
  if (!steps) return steps.error();
  FoundCheckpoint found;
  for (auto step = steps->rbegin(); step != steps->rend(); ++step) {
    found.step = *step;
    found.path = checkpoint_path(checkpoints, *step);
    const Status whole = verify_checkpoint(found.path);
    if (whole) return std::optional(found);
    found.damaged.push_back(whole.error().message);
  }
  if (found.damaged.empty()) return std::optional<FoundCheckpoint>();
  return join_errors(found.damaged);
}

Status prune_checkpoints(const fs::path& checkpoints, std::int64_t max_checkpoints) {
  const auto steps = steps_in(checkpoints);
  if (!steps) return steps.error();
  const auto count = static_cast<std::int64_t>(steps->size());
  if (max_checkpoints <= 0) return Done{};
  for (std::int64_t i = 0; i < count - max_checkpoints; ++i) {
    // Renamed first: a folder that is half removed must not look like a checkpoint.
    const fs::path path = checkpoint_path(checkpoints, (*steps)[static_cast<std::size_t>(i)]);
    const fs::path doomed = checkpoints / ("." + path.filename().string() + ".old");
    if (const Status removed = remove_folder(doomed); !removed) return removed;
    if (const Status renamed = rename_folder(path, doomed); !renamed) return renamed;
    if (const Status removed = remove_folder(doomed); !removed) return removed;
  }
  return Done{};
}

}  // namespace carnot
