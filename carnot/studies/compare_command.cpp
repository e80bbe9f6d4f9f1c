#include <ostream>

#include "carnot/core/cli/command.h"
#include "carnot/core/commands/recipe_keys.h"
#include "carnot/core/commands/run_console.h"
#include "carnot/core/run/find_run.h"
#include "carnot/studies/comparison.h"

namespace carnot {
namespace {

class CompareCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("RECIPE", request_.recipe, "YAML file", Presence::Optional);
    take.operand("KEY=VALUE", request_.settings,
                 "override the recipe for all runs: train.steps=10; `carnot help keys RECIPE` lists the keys");
    take.text("--methods", "LIST", request_.methods,
              "separated by commas, settings of one in brackets: \"grpo, grpo + aem, a2tgpo [train.epochs=2]\"; "
              "default: all");
    take.text("--seeds", "LIST", request_.seeds, "0-4 or 0,1,2; default: 0-2");
    take.text("--base", "M", request_.base,
              "the method that others are compared with; default: the first, of all grpo");
    take.text("--output", "FOLDER", request_.output, "folder of all runs and the report; default: runs/compare");
    take.flag("--dry-run", dry_run_, "print the runs and their state; run nothing");
  }

  Exit run(const Console& console) override {
    request_.recipe = find_recipe(request_.recipe);
    if (const Status exists = check_recipe_exists(request_.recipe); !exists)
      return report(console, exists.error(), request_.recipe.empty() ? Exit::Usage : Exit::Failure);
    auto plan = plan_comparison(request_);
    if (!plan) return report(console, plan.error());
    if (!dry_run_) return ended(run_comparison(*plan, prepare_run(console, StopLeaves::Checkpoint)), console);
    console.out << plan_text(*plan) << std::flush;
    return Exit::Success;
  }

 private:
  ComparisonRequest request_;
  bool dry_run_ = false;
};

}  // namespace

CommandEntry compare_entry() {
  return {.name = "compare",
          .arguments = "RECIPE --methods M,M,... [key=value ...]",
          .summary = "train methods over seeds, and report their differences",
          .example = "recipes/quickstart.yaml --methods \"grpo, grpo + aem\" --seeds 0-4",
          .settings = Settings::OfRecipe,
          .make = make_command<CompareCommand>};
}

}  // namespace carnot
