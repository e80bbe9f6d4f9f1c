#include <cerrno>
#include <cstdlib>
#include <optional>
#include <ostream>

#include "carnot/core/cli/command.h"
#include "carnot/core/commands/group_run.h"
#include "carnot/core/commands/recipe_keys.h"

namespace carnot {
namespace {

constexpr std::string_view kArguments = "RECIPE [key=value ...]";

/// `carnot train`, `carnot sft` and `carnot rollout`: a recipe, as far as its stage.
template <MemoryStage kStage>
class TrainCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("RECIPE", path_, "YAML file; or a run's folder, to continue it", Presence::Optional);
    take.operand("KEY=VALUE", overrides_,
                 "override the recipe: train.steps=10; `carnot help keys RECIPE` lists the keys");
    take.flag("--dry-run", dry_run_, "print resolved configuration, disk and memory, run nothing");
    take.count("--ranks", "N", ranks_, 1, "with --dry-run: the memory of each of so many ranks");
  }

  Exit run(const Console& console) override {
    if (ranks_ && !dry_run_)
      return report(console, {"--ranks: expected --dry-run with it; a launcher starts ranks (docs/distributed.md)"},
                    Exit::Usage);
    if (path_.empty()) return report(console, check_recipe_exists(path_).error(), Exit::Usage);
    const auto setting = rank_setting(process_variables());
    if (!setting) return report(console, setting.error());
    log_as_rank(setting->rank);
    auto recipe = read_recipe(path_, overrides_);
    if (!recipe) return report(console, recipe.error());
    if (dry_run_)
      return setting->rank > 0 ? Exit::Success : print_plan(*recipe, ranks_.value_or(setting->size), console);
    if (const Status own = take_own_gpu(*setting, recipe->run.device); !own) return report(console, own.error());
    const StopLeaves leaves = kStage == MemoryStage::Rollout ? StopLeaves::Nothing : StopLeaves::Checkpoint;
    return run_in_group(console, leaves, *setting, recipe->distributed, [&](RunControl control) {
      if (kStage == MemoryStage::Rollout) return run_rollout(*recipe, control);
      // A launcher has its own command line.
      if (setting->size == 1)
        control.command = std::string(program_invocation_name) + (kStage == MemoryStage::Sft ? " sft" : " train");
      return kStage == MemoryStage::Sft ? run_sft(*recipe, control) : run_training(*recipe, control);
    });
  }

 private:
  /// Before CUDA is loaded, and while there is one thread.
  static Status take_own_gpu(const RankSetting& setting, const std::string& device) {
    if (device != "cuda" || setting.size == 1) return Done{};
    CARNOT_ASSIGN_OR_RETURN(const auto gpu, gpu_of_rank(setting, process_variables()));
    ::setenv("CUDA_VISIBLE_DEVICES", gpu.c_str(), /*overwrite=*/1);
    return Done{};
  }

  static Exit print_plan(Recipe& recipe, int ranks, const Console& console) {
    warn(console, recipe.method.warnings);
    const Status fits = dry_run(recipe, kStage, ranks, console.out);
    console.out << std::flush;
    return ended(fits, console);
  }

  std::filesystem::path path_;
  std::vector<std::string> overrides_;
  bool dry_run_ = false;
  std::optional<int> ranks_;
};

}  // namespace

CommandEntry train_entry() {
  return {.name = "train",
          .arguments = kArguments,
          .summary = "SFT, reinforcement learning, evaluation",
          .example = "recipes/quickstart.yaml method=grpo+aem run_folder=runs/aem",
          .settings = Settings::OfRecipe,
          .make = make_command<TrainCommand<MemoryStage::Training>>};
}

CommandEntry sft_entry() {
  return {.name = "sft",
          .arguments = kArguments,
          .summary = "SFT alone",
          .example = "recipes/quickstart.yaml run_folder=runs/warm sft.steps=100",
          .settings = Settings::OfRecipe,
          .make = make_command<TrainCommand<MemoryStage::Sft>>};
}

CommandEntry rollout_entry() {
  return {.name = "rollout",
          .arguments = kArguments,
          .summary = "roll out one step's tasks into rollouts/step_0.jsonl",
          .example = "recipes/quickstart.yaml run_folder=runs/look",
          .settings = Settings::OfRecipe,
          .make = make_command<TrainCommand<MemoryStage::Rollout>>};
}

}  // namespace carnot
