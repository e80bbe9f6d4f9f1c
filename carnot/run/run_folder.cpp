#include "carnot/run/run_folder.h"

#include "carnot/base/file.h"
#include "carnot/base/temporary_name.h"

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

Result<RunFolder> open_run_folder(const fs::path& root, Resume resume) {
  RunFolder folder{root};
  if (resume == Resume::Never && folder.holds_run())
    return Error{root.string() +
                 ": holds a run already. Continue it with resume=auto, or name another folder with run_folder=..."};
  for (const fs::path& path : {folder.root, folder.tensorboard(), folder.rollouts(), folder.checkpoints()}) {
    const Status made = make_folder(path);
    if (!made) return made.error();
  }
  for (const fs::path& path :
       {folder.root, folder.tensorboard(), folder.rollouts(), folder.validation(), folder.earlier_configs()})
    if (const Status cleared = remove_temporaries(path); !cleared) return cleared.error();
  return folder;
}

}  // namespace carnot
