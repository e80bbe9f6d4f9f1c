#include <ostream>

#include "carnot/cli/entries.h"
#include "carnot/cli/recipe_keys.h"
#include "carnot/cli/run_console.h"

namespace carnot {
namespace {

class EvaluateCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("PATH", request_.path, "run folder, or one of its checkpoints", Presence::Required);
    take.operand("KEY=VALUE", request_.overrides, "override the run's config.yaml: eval.tasks=500");
    take.flag("--json", request_.json, "print the results as JSON");
  }

  Exit run(const Console& console) override {
    return ended(run_evaluation(request_, prepare_run(console, StopLeaves::Nothing)), console);
  }

  Exit print_keys(const Console& console) override {
    console.out << "Keys:\n" << std::flush;
    return print_recipe_keys({}, {}, console);
  }

 private:
  EvaluationRequest request_;
};

}  // namespace

CommandEntry evaluate_entry() {
  return {.name = "eval",
          .arguments = "PATH [key=value ...]",
          .summary = "evaluate a run's latest checkpoint, or a checkpoint",
          .settings = Settings::OfRecipe,
          .make = make_command<EvaluateCommand>};
}

}  // namespace carnot
