#include <ostream>

#include "carnot/base/log.h"
#include "carnot/cli/entries.h"
#include "carnot/cli/recipe_keys.h"
#include "carnot/cli/run_console.h"

namespace carnot {
namespace {

constexpr std::string_view kArguments = "RECIPE [key=value ...]";

/// `carnot train`, `carnot sft` and `carnot rollout`: a recipe, as far as its stage.
template <MemoryStage kStage>
class TrainCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("RECIPE", path_, "YAML file", Presence::Required);
    take.operand("KEY=VALUE", overrides_, "override the recipe: train.steps=10");
    take.flag("--dry-run", dry_run_, "print the resolved configuration and the memory budget, run nothing");
  }

  Exit run(const Console& console) override {
    log_to_console(LogLevel::Info);
    auto recipe = read_recipe(path_, overrides_);
    if (!recipe) return report(console, recipe.error());
    if (dry_run_) return print_plan(*recipe, console);
    if (kStage == MemoryStage::Rollout)
      return ended(run_rollout(*recipe, prepare_run(console, StopLeaves::Nothing)), console);
    const RunControl control = prepare_run(console, StopLeaves::Checkpoint);
    return ended(kStage == MemoryStage::Sft ? run_sft(*recipe, control) : run_training(*recipe, control), console);
  }

  Exit print_keys(const Console& console) override {
    console.out << "Keys:\n" << std::flush;
    return print_recipe_keys(path_, overrides_, console);
  }

 private:
  static Exit print_plan(Recipe& recipe, const Console& console) {
    warn(console, recipe.method.warnings);
    const Status fits = dry_run(recipe, kStage, console.out);
    console.out << std::flush;
    return ended(fits, console);
  }

  std::filesystem::path path_;
  std::vector<std::string> overrides_;
  bool dry_run_ = false;
};

}  // namespace

CommandEntry train_entry() {
  return {.name = "train",
          .arguments = kArguments,
          .summary = "SFT, reinforcement learning, evaluation",
          .settings = Settings::OfRecipe,
          .make = make_command<TrainCommand<MemoryStage::Training>>};
}

CommandEntry sft_entry() {
  return {.name = "sft",
          .arguments = kArguments,
          .summary = "SFT alone",
          .settings = Settings::OfRecipe,
          .make = make_command<TrainCommand<MemoryStage::Sft>>};
}

CommandEntry rollout_entry() {
  return {.name = "rollout",
          .arguments = kArguments,
          .summary = "roll out one step's tasks into rollouts/step_0.jsonl",
          .settings = Settings::OfRecipe,
          .make = make_command<TrainCommand<MemoryStage::Rollout>>};
}

}  // namespace carnot
