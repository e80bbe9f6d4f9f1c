#include "carnot/core/hf/hub_cache.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "carnot/core/base/file.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

fs::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path hub_cache() {
  if (const fs::path cache = variable("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const fs::path home = variable("HF_HOME"); !home.empty()) return home / "hub";
  if (const fs::path caches = variable("XDG_CACHE_HOME"); !caches.empty()) return caches / "huggingface" / "hub";
  return variable("HOME") / ".cache" / "huggingface" / "hub";
}

/// Letters, digits, '-', '_' and '.', and not all periods: no name that leaves a folder.
bool is_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return !name.empty() && name.find_first_not_of('.') != std::string_view::npos &&
         std::all_of(name.begin(), name.end(), fits);
}

struct HubId {
  std::string owner{}, name{}, revision = "main";
};

/// Empty if the text is no id.
bool parse_id(std::string_view text, HubId& id) {
  const std::size_t at = text.find('@');
  if (at != std::string_view::npos) {
    id.revision = text.substr(at + 1);
    text = text.substr(0, at);
    if (!is_name(id.revision)) return false;
  }
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  id.owner = text.substr(0, slash);
  id.name = text.substr(slash + 1);
  return is_name(id.owner) && is_name(id.name);
}

}  // namespace

Result<fs::path> pretrained_folder(const std::string& path_or_id) {
  std::error_code ignored;
  HubId id;
  if (fs::exists(path_or_id, ignored) || !parse_id(path_or_id, id)) return fs::path(path_or_id);
  const fs::path model = hub_cache() / ("models--" + id.owner + "--" + id.name);
  std::string commit = id.revision;
  if (const auto named = read_file(model / "refs" / id.revision); named) commit = std::string(trim(*named));
  const fs::path snapshot = model / "snapshots" / commit;
  if (is_name(commit) && fs::exists(snapshot / "config.json", ignored)) return snapshot;
  const bool is_main = id.revision == "main";
  return Error{path_or_id + ": no such folder, and no model of this id in " + hub_cache().string() +
               "; this fetches it: hf download " + id.owner + "/" + id.name +
               (is_main ? "" : " --revision " + id.revision)};
}

}  // namespace carnot
