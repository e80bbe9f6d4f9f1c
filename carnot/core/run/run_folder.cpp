#include "carnot/core/run/run_folder.h"

#include <set>
#include <string>

#include "carnot/core/base/file.h"
#include "carnot/core/base/temporary_name.h"

namespace carnot {

namespace fs = std::filesystem;

fs::path RunFolder::rollouts(std::int64_t step) const {
  return rollouts() / ("step_" + std::to_string(step) + ".jsonl");
}

bool RunFolder::holds_run() const {
  std::error_code ignored;
  if (fs::exists(config(), ignored) || fs::exists(metrics(), ignored)) return true;
  return fs::is_directory(checkpoints(), ignored) && !fs::is_empty(checkpoints(), ignored);
}

Status check_run_folder(const fs::path& root, Resume resume) {
  if (root.empty()) return Error{"run_folder: empty; expected the name of a folder that the run is to write into"};
  const RunFolder folder{root};
  if (folder.holds_run()) {
    if (resume == Resume::Auto) return Done{};
    return Error{root.string() +
                 ": holds a run already. Continue it with resume=auto, or name another folder with run_folder=..."};
  }
  static const std::set<std::string> kOwn{"run_id",       "earlier_configs", "tensorboard", "rollouts",
                                          "validation",   "checkpoints",     "warm_start",  "base",
                                          "summary.json", "view.html",       "lost+found"};
  std::error_code reason;
  for (fs::directory_iterator entry(root, reason), end; !reason && entry != end; entry.increment(reason)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.') || name.ends_with(".log") || name == "log.txt" || kOwn.contains(name)) continue;
    return Error{root.string() + ": holds " + name +
                 ", which no run writes. A run's folder holds nothing else; name another one with run_folder=..."};
  }
  return Done{};
}

Result<RunFolder> open_run_folder(const fs::path& root, Resume resume) {
  CARNOT_RETURN_IF_ERROR(check_run_folder(root, resume));
  RunFolder folder{root};
  for (const fs::path& path : {folder.root, folder.tensorboard(), folder.rollouts(), folder.checkpoints()})
    CARNOT_RETURN_IF_ERROR(make_folder(path));
  for (const fs::path& path :
       {folder.root, folder.tensorboard(), folder.rollouts(), folder.validation(), folder.earlier_configs()})
    CARNOT_RETURN_IF_ERROR(remove_temporaries(path));
  return folder;
}

}  // namespace carnot
