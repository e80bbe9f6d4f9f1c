#include "carnot/core/run/checkpoint_folder.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/temporary_name.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = "MANIFEST.json";
constexpr char kPointer[] = "latest_checkpointed_iteration.txt";
constexpr std::string_view kPrefix = "global_step_";
constexpr int kManifestVersion = 1;

std::string pointer_text(std::int64_t step) { return std::to_string(step) + "\n"; }

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

/// `path` leads to what `made` led to; what had that name, if anything, is called `made` afterwards.
Status put_in_place(const fs::path& made, const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(path, ignored))) return rename_folder(made, path);
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return Done{};
  const std::error_code reason(errno, std::generic_category());
  const bool cannot_exchange = errno == EINVAL || errno == ENOSYS || errno == ENOTSUP;
  if (!cannot_exchange) return failure(path, "cannot replace", reason);
  CARNOT_ASSIGN_OR_RETURN(const auto name, temporary_name());
  const fs::path aside = path.parent_path() / name;
  CARNOT_RETURN_IF_ERROR(rename_folder(path, aside));
  if (const Status placed = rename_folder(made, path); !placed) {
    (void)rename_folder(aside, path);
    return placed;
  }
  return rename_folder(aside, made);
}

Status write_manifest(const fs::path& folder, const OrderedJson& manifest) {
  return write_file_atomically(folder / kManifest, manifest.dump(2) + "\n");
}

Status write_files(const fs::path& folder, std::int64_t step, std::span<const CheckpointFile> files) {
  OrderedJson listed = OrderedJson::object();
  for (const CheckpointFile& file : files) {
    const fs::path path = folder / file.name;
    CARNOT_RETURN_IF_ERROR(make_folder(path.parent_path()));
    CARNOT_RETURN_IF_ERROR(file.write(path));
    for (const fs::path& changed : {path, path.parent_path()}) CARNOT_RETURN_IF_ERROR(sync_path(changed));
    CARNOT_ASSIGN_OR_RETURN(const auto digest, sha256_of_file(path));
    std::error_code reason;
    const auto size = fs::file_size(path, reason);
    if (reason) return failure(path, "cannot read its size", reason);
    listed[file.name] = {{"size", size}, {"sha256", digest}};
  }
  return write_manifest(folder, {{"version", kManifestVersion}, {"step", step}, {"files", listed}});
}

/// N of global_step_N.
std::optional<std::int64_t> step_in(const std::string& name) {
  std::int64_t step = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  const bool is_step = step >= 0 && name == std::string(kPrefix) + std::to_string(step);
  return is_step ? std::optional(step) : std::nullopt;
}

/// Empty, or what is wrong with one file of a manifest.
std::string file_problem(const fs::path& path, const OrderedJson& entry) {
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

Result<OrderedJson> read_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kManifest;
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(path));
  auto parsed = parse_json_object<OrderedJson>(text, path.string());
  if (!parsed) return Error{parsed.error().message + "; it is damaged"};
  OrderedJson manifest = std::move(parsed).value();
  const bool has_files = manifest.contains("files") && manifest["files"].is_object();
  if (!has_files) return Error{path.string() + ": damaged: expected JSON with an object `files`"};
  if (manifest["files"].empty()) return Error{path.string() + ": damaged: it lists no files"};
  const bool is_known = manifest.contains("version") && manifest["version"] == kManifestVersion;
  if (!is_known)
    return Error{path.string() + ": expected version " + std::to_string(kManifestVersion) + ", found " +
                 (manifest.contains("version") ? shown(manifest["version"]) : "none")};
  if (!manifest.contains("step") || !manifest["step"].is_number_integer())
    return Error{path.string() + ": damaged: expected an integer `step`"};
  return manifest;
}

/// A checkpoint under a temporary name; those of version 0.1 were called .global_step_N.tmp and .global_step_N.old.
bool is_leftover(const std::string& name) {
  if (is_temporary_name(name)) return true;
  return name.starts_with("." + std::string(kPrefix)) && (name.ends_with(".tmp") || name.ends_with(".old"));
}

Status repair_leftover(const fs::path& checkpoints, const fs::path& leftover) {
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(leftover, ignored)) || !verify_checkpoint(leftover))
    return remove_folder(leftover);
  const fs::path path = checkpoint_path(checkpoints, checkpoint_step(leftover).value());
  if (fs::exists(fs::symlink_status(path, ignored))) return remove_folder(leftover);
  CARNOT_RETURN_IF_ERROR(rename_folder(leftover, path));
  return sync_path(checkpoints);
}

/// Renamed first: a folder that is half removed must not look like a checkpoint.
Status remove_checkpoint(const fs::path& path) {
  CARNOT_ASSIGN_OR_RETURN(const auto name, temporary_name());
  const fs::path doomed = path.parent_path() / name;
  CARNOT_RETURN_IF_ERROR(rename_folder(path, doomed));
  return remove_folder(doomed);
}

}  // namespace

Result<std::vector<std::int64_t>> checkpoint_steps(const fs::path& checkpoints) {
  std::vector<std::int64_t> steps;
  std::error_code reason;
  if (!fs::exists(checkpoints, reason)) return steps;
  fs::directory_iterator entries(checkpoints, reason);
  for (; !reason && entries != fs::directory_iterator(); entries.increment(reason))
    if (const auto step = step_in(entries->path().filename().string())) steps.push_back(*step);
  if (reason) return Error{checkpoints.string() + ": cannot list: " + reason.message()};
  std::sort(steps.begin(), steps.end());
  return steps;
}

bool lies_in(const fs::path& checkpoint, const fs::path& checkpoints) {
  std::error_code ignored;
  return fs::equivalent((fs::absolute(checkpoint) / "").lexically_normal().parent_path().parent_path(), checkpoints,
                        ignored);
}

bool is_checkpoint_name(const std::string& name) { return step_in(name).has_value(); }

fs::path checkpoint_path(const fs::path& checkpoints, std::int64_t step) {
  return checkpoints / (std::string(kPrefix) + std::to_string(step));
}

Status replace_folder(const fs::path& path, const std::function<Status(const fs::path&)>& fill) {
  CARNOT_RETURN_IF_ERROR(make_folder(path.parent_path()));
  CARNOT_ASSIGN_OR_RETURN(const auto temporary, make_temporary_folder(path.parent_path()));
  Status status = fill(temporary);
  if (status) status = sync_path(temporary);
  if (status) status = put_in_place(temporary, path);
  if (status) status = sync_path(path.parent_path());
  const Status removed = remove_folder(temporary);  // what was there before, or half of what should have come
  return status ? removed : status;
}

Status write_checkpoint(const fs::path& checkpoints, std::int64_t step, std::span<const CheckpointFile> files) {
  CARNOT_RETURN_IF_ERROR(replace_folder(checkpoint_path(checkpoints, step),
                                        [&](const fs::path& folder) { return write_files(folder, step, files); }));
  return write_file_atomically(checkpoints / kPointer, pointer_text(step));
}

Status verify_checkpoint(const fs::path& checkpoint) {
  CARNOT_ASSIGN_OR_RETURN(const auto manifest, read_manifest(checkpoint));
  std::vector<std::string> problems;
  for (const auto& [name, entry] : manifest["files"].items()) {
    std::string problem = file_problem(checkpoint / name, entry);
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

Result<std::int64_t> checkpoint_step(const fs::path& checkpoint) {
  CARNOT_ASSIGN_OR_RETURN(const auto manifest, read_manifest(checkpoint));
  return manifest["step"].get<std::int64_t>();
}

Result<std::optional<FoundCheckpoint>> latest_checkpoint(const fs::path& checkpoints) {
  CARNOT_ASSIGN_OR_RETURN(const auto steps, checkpoint_steps(checkpoints));
  FoundCheckpoint found;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    found.step = *step;
    found.path = checkpoint_path(checkpoints, *step);
    const Status whole = verify_checkpoint(found.path);
    if (whole) return std::optional(found);
    found.damaged.push_back(whole.error().message);
  }
  if (found.damaged.empty()) return std::optional<FoundCheckpoint>();
  return join_errors(found.damaged);
}

Status repair_checkpoints(const fs::path& checkpoints) {
  std::error_code reason;
  if (!fs::exists(checkpoints, reason)) return Done{};
  std::vector<fs::path> leftovers;
  fs::directory_iterator entries(checkpoints, reason);
  for (; !reason && entries != fs::directory_iterator(); entries.increment(reason))
    if (is_leftover(entries->path().filename().string())) leftovers.push_back(entries->path());
  if (reason) return failure(checkpoints, "cannot list", reason);
  for (const fs::path& leftover : leftovers) CARNOT_RETURN_IF_ERROR(repair_leftover(checkpoints, leftover));
  CARNOT_ASSIGN_OR_RETURN(const auto steps, checkpoint_steps(checkpoints));
  if (steps.empty()) fs::remove(checkpoints / kPointer, reason);
  return reason ? failure(checkpoints / kPointer, "cannot remove", reason) : Status(Done{});
}

Result<std::vector<fs::path>> go_on_from(const fs::path& checkpoints, std::int64_t step, std::int64_t max_checkpoints) {
  CARNOT_ASSIGN_OR_RETURN(const auto steps, checkpoint_steps(checkpoints));
  std::vector<fs::path> later;
  for (const std::int64_t other : steps)
    if (other > step) later.push_back(checkpoint_path(checkpoints, other));
  for (const fs::path& path : later) CARNOT_RETURN_IF_ERROR(remove_checkpoint(path));
  const fs::path pointer = checkpoints / kPointer;
  const auto found = read_file(pointer);
  if (!found || *found != pointer_text(step))
    CARNOT_RETURN_IF_ERROR(write_file_atomically(pointer, pointer_text(step)));
  CARNOT_RETURN_IF_ERROR(prune_checkpoints(checkpoints, max_checkpoints));
  return later;
}

Status thin_checkpoints(const fs::path& checkpoints, std::span<const std::string> files, std::size_t keep) {
  CARNOT_ASSIGN_OR_RETURN(const auto steps, checkpoint_steps(checkpoints));
  for (std::size_t i = 0; i + keep < steps.size(); ++i) {
    const fs::path checkpoint = checkpoint_path(checkpoints, steps[i]);
    auto manifest = read_manifest(checkpoint);
    if (!manifest) continue;
    std::size_t listed = 0;
    for (const std::string& file : files) listed += (*manifest)["files"].erase(file);
    if (listed > 0) CARNOT_RETURN_IF_ERROR(write_manifest(checkpoint, *manifest));
    std::error_code reason;
    for (const std::string& file : files)
      if (fs::remove(checkpoint / file, reason); reason) return failure(checkpoint / file, "cannot remove", reason);
  }
  return Done{};
}

Status prune_checkpoints(const fs::path& checkpoints, std::int64_t max_checkpoints) {
  CARNOT_ASSIGN_OR_RETURN(const auto steps, checkpoint_steps(checkpoints));
  const auto count = static_cast<std::int64_t>(steps.size());
  if (max_checkpoints <= 0) return Done{};
  for (std::int64_t i = 0; i < count - max_checkpoints; ++i)
    CARNOT_RETURN_IF_ERROR(remove_checkpoint(checkpoint_path(checkpoints, steps[i])));
  return Done{};
}

}  // namespace carnot
