#include "carnot/core/run/export_output.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/run/checkpoint_folder.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr char kMarker[] = "carnot_export.json";
constexpr int kMarkerVersion = 1;

/// Absolute, without links as far as it is there, without a slash at its end.
Result<fs::path> resolved(const fs::path& path) {
  std::error_code reason;
  const fs::path real = fs::weakly_canonical(fs::absolute(path) / "", reason);
  if (reason) return Error{path.string() + ": " + reason.message()};
  return real.has_filename() ? real : real.parent_path();
}

/// `inner` is `outer` or below it. REQUIRES: both resolved.
bool contains(const fs::path& outer, const fs::path& inner) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

/// Whether files of the source are links into `output`.
Result<bool> links_into(const fs::path& source, const fs::path& output) {
  std::error_code reason;
  for (fs::recursive_directory_iterator entry(source, reason), end; !reason && entry != end; entry.increment(reason)) {
    std::error_code dangling;
    if (entry->is_symlink(dangling) && contains(output, fs::canonical(entry->path(), dangling))) return true;
  }
  if (reason) return Error{source.string() + ": cannot list: " + reason.message()};
  return false;
}

/// Names below `folder` of all that is no folder.
Result<std::set<std::string>> files_below(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code reason;
  for (fs::recursive_directory_iterator entry(folder, reason), end; !reason && entry != end; entry.increment(reason)) {
    std::error_code ignored;
    if (!fs::is_directory(entry->symlink_status(ignored)))
      names.insert(entry->path().lexically_relative(folder).string());
  }
  if (reason) return Error{folder.string() + ": cannot list: " + reason.message()};
  names.erase(kMarker);
  return names;
}

/// The files that an export wrote; empty if no export wrote the folder.
std::set<std::string> exported_files(const fs::path& folder) {
  const auto text = read_file(folder / kMarker);
  const auto marker = text ? parse_json_object<OrderedJson>(*text, kMarker) : Result<OrderedJson>(text.error());
  if (!marker || !marker->contains("files") || !marker->at("files").is_array()) return {};
  std::set<std::string> names;
  for (const OrderedJson& name : marker->at("files"))
    if (name.is_string()) names.insert(name.get<std::string>());
  return names;
}

Status check_overwrite(const fs::path& output) {
  CARNOT_ASSIGN_OR_RETURN(const auto there, files_below(output));
  const std::set<std::string> exported = exported_files(output);
  if (exported.empty())
    return Error{output.string() + ": --overwrite replaces what an export wrote (it has a " + kMarker +
                 "), and this folder has none; expected another --output, or remove the folder yourself"};
  for (const std::string& name : there)
    if (!exported.contains(name))
      return Error{output.string() + ": holds " + name +
                   ", which no export wrote and --overwrite would remove; expected another --output"};
  return Done{};
}

Status check_source(const fs::path& source, const fs::path& output) {
  if (contains(output, source))
    return Error{"--output " + output.string() + ": holds what is exported, " + source.string() +
                 ", which would be lost; expected a separate folder"};
  if (contains(source, output))
    return Error{"--output " + output.string() + ": is inside what is exported, " + source.string() +
                 "; expected a separate folder"};
  CARNOT_ASSIGN_OR_RETURN(const auto linked, links_into(source, output));
  if (linked)
    return Error{"--output " + output.string() + ": holds files that " + source.string() +
                 " links to, which would be lost; expected a separate folder"};
  if (output.parent_path() == source.parent_path() && is_checkpoint_name(output.filename().string()))
    return Error{"--output " + output.string() + ": would be taken for a checkpoint of the run; expected another name"};
  return Done{};
}

/// The output with links resolved, apart from all that is read.
Result<fs::path> separate_output(const ExportPlace& place) {
  CARNOT_ASSIGN_OR_RETURN(const auto output, resolved(place.output));
  for (const fs::path& read : {place.source, place.base}) {
    if (read.empty()) continue;
    CARNOT_ASSIGN_OR_RETURN(const auto source, resolved(read));
    CARNOT_RETURN_IF_ERROR(check_source(source, output));
  }
  return output;
}

Error already_there(const fs::path& output, const std::string& how) {
  return Error{output.string() + ": is there already" + (how.empty() ? "" : " " + how) +
               "; expected another --output, or --overwrite"};
}

bool is_gguf(const fs::path& file) {
  std::string magic(4, 0);
  return std::ifstream(file).read(magic.data(), 4) && magic == "GGUF";
}

}  // namespace

Result<fs::path> export_output(const ExportPlace& place) {
  const auto output = separate_output(place);
  if (!output) return output;
  std::error_code ignored;
  const fs::file_status there = fs::symlink_status(*output, ignored);
  if (!fs::exists(there)) return output;
  if (!fs::is_directory(there)) return Error{output->string() + ": is not a folder; expected another --output"};
  if (fs::is_empty(*output, ignored)) return output;
  if (!place.overwrite) return already_there(*output, "and not empty");
  CARNOT_RETURN_IF_ERROR(check_overwrite(*output));
  return output;
}

Result<fs::path> export_output_file(const ExportPlace& place) {
  const auto output = separate_output(place);
  if (!output) return output;
  std::error_code ignored;
  const fs::file_status there = fs::symlink_status(*output, ignored);
  if (!fs::exists(there)) return output;
  if (!fs::is_regular_file(there)) return Error{output->string() + ": is not a file; expected another --output"};
  if (!place.overwrite) return already_there(*output, "");
  if (!is_gguf(*output))
    return Error{output->string() + ": --overwrite replaces a GGUF file, which this is not; expected another --output"};
  return output;
}

Status mark_as_export(const fs::path& folder) {
  const auto files = files_below(folder);
  if (!files) return files.error();
  const OrderedJson marker{{"version", kMarkerVersion}, {"files", *files}};
  return write_file_atomically(folder / kMarker, marker.dump(2) + "\n");
}

}  // namespace carnot
