#include "carnot/core/run/find_run.h"

#include "carnot/core/base/log.h"
#include "carnot/core/base/process_environment.h"
#include "carnot/core/hf/hub_cache.h"
#include "carnot/core/run/checkpoint_folder.h"
#include "carnot/core/run/run_folder.h"

namespace carnot {

namespace fs = std::filesystem;

namespace {

Error damaged_latest(const FoundCheckpoint& found) {
  Error error = join_errors(found.damaged);
  error.message +=
      "\nthe run's latest checkpoint is damaged; to use the latest that is whole, name it: " + found.path.string() +
      " (resume=auto continues the run from there)";
  return error;
}

}  // namespace

fs::path find_recipe(const fs::path& path) {
  std::error_code ignored;
  if (path.empty() || fs::exists(path, ignored) || *path.begin() != "recipes") return path;
  const auto folders = own_folders("recipes");
  if (!folders) return path;
  for (const fs::path& folder : *folders)
    if (const fs::path own = folder / path.lexically_relative("recipes"); fs::exists(own, ignored)) return own;
  return path;
}

Result<fs::path> find_checkpoint(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    return Error{path.string() + ": does not exist; expected a run folder or a checkpoint folder"};
  if (fs::exists(path / "trainer_state.json")) {
    CARNOT_RETURN_IF_ERROR(verify_checkpoint(path));
    return path;
  }
  for (const fs::path& root : {path, path / "warm_start"}) {
    if (!fs::exists(RunFolder{root}.checkpoints())) continue;
    CARNOT_ASSIGN_OR_RETURN(const auto found, latest_checkpoint(RunFolder{root}.checkpoints()));
    if (!found) continue;
    if (!found->damaged.empty()) return damaged_latest(*found);
    if (root != path) log_info(path.string() + ": holds no checkpoint yet; that of its SFT stage is used");
    return found->path;
  }
  return Error{path.string() + ": holds no checkpoint; expected a run folder or a checkpoint folder"};
}

Result<fs::path> find_model(const fs::path& path_or_id) {
  std::error_code ignored;
  CARNOT_ASSIGN_OR_RETURN(const auto found, pretrained_folder(path_or_id.string()));
  const fs::path& path = found;
  if (!fs::is_directory(path, ignored))
    return Error{path.string() + ": is no folder; expected a Hugging Face folder, a checkpoint or a run folder"};
  const bool plain = fs::exists(path / "config.json", ignored) && !fs::exists(path / "trainer_state.json", ignored);
  return plain ? path : find_checkpoint(path);
}

Result<fs::path> find_config(const fs::path& checkpoint) {
  fs::path folder = fs::absolute(checkpoint);
  for (int level = 0; level < 4; ++level) {
    if (fs::exists(folder / "config.yaml")) return folder / "config.yaml";
    folder = folder.parent_path();
  }
  return Error{checkpoint.string() + ": no config.yaml of its run above it"};
}

bool is_recorded(const fs::path& recipe) {
  const RunFolder folder{fs::absolute(recipe).parent_path()};
  std::error_code ignored;
  return recipe.filename() == folder.config().filename() && fs::is_directory(folder.checkpoints(), ignored);
}

Result<Recipe> load_recorded(const fs::path& config, const std::vector<std::string>& overrides) {
  CARNOT_ASSIGN_OR_RETURN(auto recipe, Recipe::load_recorded(config, overrides));
  for (const std::string& line : recipe.passed_over) log_warning(line + "; ignored, because the run was made with it");
  return recipe;
}

}  // namespace carnot
