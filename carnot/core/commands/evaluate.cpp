#include "carnot/core/commands/evaluate.h"

#include <ostream>

#include "carnot/core/cli/command.h"
#include "carnot/core/commands/recipe_keys.h"
#include "carnot/core/commands/run_console.h"
#include "carnot/core/run/find_run.h"

namespace carnot {
namespace {

class EvaluateCommand final : public Command {
 public:
  explicit EvaluateCommand(std::unique_ptr<ApiPolicyFlags> api) : api_(std::move(api)) {}

  void declare(OptionParser& take) override {
    take.operand("PATH", request_.path, "run folder, one of its checkpoints, or a recipe", Presence::Required);
    take.operand(
        "KEY=VALUE", request_.overrides,
        "override the run's config.yaml or the recipe: eval.tasks=500; `carnot help keys RECIPE` lists the keys");
    take.flag("--json", request_.json, "print the results as JSON");
    take.word("--agent", "NAME", request_.agent, kAgents,
              "prompt: the environment's own prompts (default); react: thought, action, observation");
    take.text("--model", "DIR", request_.model, "evaluate this model: Hugging Face folder, checkpoint or run folder");
    if (api_) api_->declare(take);
  }

  Exit run(const Console& console) override {
    request_.path = find_recipe(request_.path);
    if (api_) {
      auto policy = api_->policy(!request_.model.empty());
      if (!policy) return report(console, policy.error());
      request_.api_policy = std::move(policy).value();
    }
    return ended(run_evaluation(request_, prepare_run(console, StopLeaves::Nothing)), console);
  }

 private:
  EvaluationRequest request_{};
  std::unique_ptr<ApiPolicyFlags> api_;
};

}  // namespace

CommandEntry evaluate_entry(std::unique_ptr<ApiPolicyFlags> (*api)()) {
  return {.name = "eval",
          .arguments = "PATH [key=value ...]",
          .summary = "evaluate a run's latest checkpoint, a checkpoint, a model, or one behind a server",
          .example = "runs/quickstart eval.tasks=500",
          .settings = Settings::OfRecipe,
          .make = [api] { return std::make_unique<EvaluateCommand>(api == nullptr ? nullptr : api()); }};
}

}  // namespace carnot
