// The command `carnot eval`: a checkpoint, a model, or a model behind a server, by the environment's prompts or
// ReAct's.
#include <algorithm>
#include <limits>

#include "carnot/core/env/react.h"
#include "carnot/core/run/find_run.h"
#include "carnot/core/run/run.h"
#include "carnot/core/run/stages.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

bool is_recipe_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// The settings, and the checkpoint that they belong to, if they belong to one.
struct Evaluated {
  Recipe recipe;
  std::optional<fs::path> checkpoint{};
  std::string name{};
};

Result<Evaluated> read_recipe(const EvaluationRequest& request) {
  Evaluated out;
  if (is_recipe_file(request.path)) {
    CARNOT_ASSIGN_OR_RETURN(auto loaded, Recipe::load(request.path, request.overrides));
    out.recipe = std::move(loaded);
    out.name = out.recipe.model.path.empty() ? request.path.string() : out.recipe.model.path;
    if (out.recipe.model.path.empty() && request.model.empty() && request.api_policy == nullptr)
      return Error{request.path.string() + ": model.path: names no model; expected one, or --model or --endpoint"};
    return out;
  }
  CARNOT_ASSIGN_OR_RETURN(const auto checkpoint, find_checkpoint(request.path));
  CARNOT_ASSIGN_OR_RETURN(const auto config, find_config(checkpoint));
  CARNOT_ASSIGN_OR_RETURN(auto loaded, load_recorded(config, request.overrides));
  out.recipe = std::move(loaded);
  out.checkpoint = checkpoint;
  out.name = checkpoint.string();
  return out;
}

/// Puts --model in the place of what the settings name.
Status choose_model(const EvaluationRequest& request, Evaluated& evaluated) {
  if (request.model.empty()) return Done{};
  std::error_code ignored;
  if (fs::exists(request.model / "trainer_state.json", ignored) || fs::exists(request.model / "config.yaml", ignored)) {
    CARNOT_ASSIGN_OR_RETURN(const auto checkpoint, find_checkpoint(request.model));
    evaluated.checkpoint = checkpoint;
    evaluated.name = checkpoint.string();
    return Done{};
  }
  CARNOT_ASSIGN_OR_RETURN(const auto folder, find_model(request.model));
  evaluated.checkpoint.reset();
  evaluated.recipe.model.path = folder.string();
  evaluated.name = folder.string();
  return Done{};
}

void choose_agent(const EvaluationRequest& request, Recipe& recipe) {
  if (request.agent != "react") return;
  const std::string lead = recipe.answer_lead();
  recipe.environment = make_react_factory(std::move(recipe.environment), lead);
}

/// Lines between would be no JSON; a bar leaves no trace.
Progress progress_for(const EvaluationRequest& request, const RunControl& control) {
  const double quiet_for = request.json ? std::numeric_limits<double>::infinity() : Progress::Options().quiet_for;
  return Progress(control.out, {.terminal = control.terminal, .columns = control.columns, .quiet_for = quiet_for});
}

Result<std::optional<EvaluatedGroups>> evaluate_locally(const EvaluationRequest& request, const RunControl& control,
                                                        Evaluated& evaluated) {
  Recipe& recipe = evaluated.recipe;
  CARNOT_RETURN_IF_ERROR(ModelBundle::prepare_device(recipe.run));
  CARNOT_ASSIGN_OR_RETURN(auto bundle, ModelBundle::make(recipe, evaluated.checkpoint));
  choose_agent(request, recipe);
  const Generation generation = make_generation(bundle, recipe.rollout, recipe.step_trajectories());
  Progress progress = progress_for(request, control);
  return evaluate_with_bar({progress, control}, "evaluation", recipe, bundle, *generation.engine);
}

Result<std::optional<EvaluatedGroups>> evaluate_remotely(const EvaluationRequest& request, const RunControl& control,
                                                         Evaluated& evaluated) {
  Recipe& recipe = evaluated.recipe;
  evaluated.name = request.api_policy->name();
  const auto seed = static_cast<std::uint64_t>(recipe.run.seed);
  CARNOT_RETURN_IF_ERROR(recipe.environment->prepare(seed));
  choose_agent(request, recipe);
  Progress progress = progress_for(request, control);
  return request.api_policy->evaluate(recipe, progress, control);
}

}  // namespace

Result<RunEnd> run_evaluation(const EvaluationRequest& request, const RunControl& control) {
  CARNOT_ASSIGN_OR_RETURN(auto evaluated, read_recipe(request));
  CARNOT_RETURN_IF_ERROR(choose_model(request, evaluated));
  if (evaluated.recipe.evaluation.tasks == 0) return Error{"eval.tasks: is 0; expected how many tasks are evaluated"};
  const bool remote = request.api_policy != nullptr;
  auto result = remote ? evaluate_remotely(request, control, evaluated) : evaluate_locally(request, control, evaluated);
  if (!result) return result.error();
  if (!*result) return RunEnd::Interrupted;
  const Recipe& recipe = evaluated.recipe;
  if (request.json) {
    control.out << evaluation_json((*result)->evaluation) << "\n";
  } else {
    control.out << evaluated.name << "\n"
                << evaluation_table({{"success and more", (*result)->evaluation}}, recipe.evaluation.breakdown);
  }
  note_few_tasks(recipe);
  const std::string name = evaluated.checkpoint ? evaluated.checkpoint->filename().string() : evaluated.name;
  CARNOT_RETURN_IF_ERROR(check_evaluation(name, **result, recipe));
  return RunEnd::Complete;
}

}  // namespace carnot
