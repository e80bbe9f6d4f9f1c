// The command `carnot eval`: a checkpoint, a model, or a model behind a server, by the environment's prompts or
// ReAct's.
#include <algorithm>
#include <limits>

#include "carnot/base/file.h"
#include "carnot/base/random.h"
#include "carnot/base/thread_pool.h"
#include "carnot/endpoint/episodes.h"
#include "carnot/env/react/react.h"
#include "carnot/run/find_run.h"
#include "carnot/run/run.h"
#include "carnot/run/stages.h"
#include "carnot/train/infra_failures.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

bool is_recipe_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

Status check_flags(const EvaluationRequest& request) {
  const bool remote = !request.endpoint.url.empty();
  std::vector<std::string> problems;
  if (remote && !request.model.empty())
    problems.emplace_back("--model: has no effect beside --endpoint; expected one of them");
  if (remote && request.endpoint.model.empty())
    problems.emplace_back("--endpoint-model: missing; expected a model that the server knows");
  if (!remote && !request.endpoint.model.empty())
    problems.emplace_back("--endpoint-model: has no effect without --endpoint");
  if (!remote && !request.transcripts.empty()) problems.emplace_back("--transcripts: has no effect without --endpoint");
  if (request.endpoint.concurrency > kMaxThreads)
    problems.push_back("--concurrency: expected a number from 1 to " + std::to_string(kMaxThreads));
  if (!problems.empty()) return join_errors(problems);
  return Done{};
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
    auto loaded = Recipe::load(request.path, request.overrides);
    if (!loaded) return loaded.error();
    out.recipe = std::move(loaded).value();
    out.name = out.recipe.model.path.empty() ? request.path.string() : out.recipe.model.path;
    if (out.recipe.model.path.empty() && request.model.empty() && request.endpoint.url.empty())
      return Error{request.path.string() + ": model.path: names no model; expected one, or --model or --endpoint"};
    return out;
  }
  const auto checkpoint = find_checkpoint(request.path);
  if (!checkpoint) return checkpoint.error();
  const auto config = find_config(*checkpoint);
  if (!config) return config.error();
  auto loaded = load_recorded(*config, request.overrides);
  if (!loaded) return loaded.error();
  out.recipe = std::move(loaded).value();
  out.checkpoint = *checkpoint;
  out.name = checkpoint->string();
  return out;
}

/// Puts --model in the place of what the settings name.
Status choose_model(const EvaluationRequest& request, Evaluated& evaluated) {
  if (request.model.empty()) return Done{};
  std::error_code ignored;
  if (fs::exists(request.model / "trainer_state.json", ignored) || fs::exists(request.model / "config.yaml", ignored)) {
    const auto checkpoint = find_checkpoint(request.model);
    if (!checkpoint) return checkpoint.error();
    evaluated.checkpoint = *checkpoint;
    evaluated.name = checkpoint->string();
    return Done{};
  }
  const auto folder = find_model(request.model);
  if (!folder) return folder.error();
  evaluated.checkpoint.reset();
  evaluated.recipe.model.path = folder->string();
  evaluated.name = folder->string();
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
  if (const Status status = ModelBundle::prepare_device(recipe.run); !status) return status.error();
  auto bundle = ModelBundle::make(recipe, evaluated.checkpoint);
  if (!bundle) return bundle.error();
  choose_agent(request, recipe);
  const Generation generation = make_generation(*bundle, recipe.rollout, recipe.step_trajectories());
  Progress progress = progress_for(request, control);
  return evaluate_with_bar({progress, control}, "evaluation", recipe, *bundle, *generation.engine);
}

EndpointRun endpoint_run(const EvaluationRequest& request, const Recipe& recipe) {
  const RolloutOptions& rollout = recipe.rollout.options;
  return {.episode = {.model = request.endpoint.model,
                      .temperature = recipe.evaluation.temperature,
                      .top_p = recipe.evaluation.top_p,
                      .max_context_tokens = rollout.episode.max_context_tokens,
                      .max_response_tokens = rollout.episode.max_response_tokens,
                      .max_turns = rollout.episode.max_turns},
          .samples = recipe.evaluation.samples,
          .concurrency = request.endpoint.concurrency,
          .turn_timeout = request.endpoint.timeout + rollout.environment_timeout,
          .seed = derive_seed(static_cast<std::uint64_t>(recipe.run.seed), "evaluation")};
}

Result<std::optional<EvaluatedGroups>> evaluate_remotely(const EvaluationRequest& request, const RunControl& control,
                                                         Evaluated& evaluated) {
  Recipe& recipe = evaluated.recipe;
  auto opened = ChatEndpoint::open(request.endpoint, "--endpoint: ");
  if (!opened) return opened.error();
  const std::shared_ptr<ChatEndpoint> endpoint = std::move(opened).value();
  evaluated.name = request.endpoint.model + " at " + endpoint->url().shown();
  const auto seed = static_cast<std::uint64_t>(recipe.run.seed);
  if (const Status ready = recipe.environment->prepare(seed); !ready) return ready.error();
  choose_agent(request, recipe);
  const std::int64_t num_tasks = num_evaluated_tasks(recipe.evaluation, *recipe.environment);
  std::vector<EndpointTask> tasks;
  for (std::int64_t i = 0; i < num_tasks; ++i)
    tasks.push_back({.uid = "validation_" + std::to_string(i),
                     .environment = recipe.environment_name,
                     .task_index = i,
                     .make = [&made_by = *recipe.environment, i] { return made_by.make(Split::Validation, i); }});
  Progress progress = progress_for(request, control);
  progress.begin("evaluation", num_tasks * recipe.evaluation.samples);
  EndpointResult result = play_episodes(endpoint, tasks, endpoint_run(request, recipe),
                                        {.on_progress = [&](std::int64_t ended) { progress.update(ended); },
                                         .go_on = [&] { return !control.stop_requested(); }});
  progress.end();
  if (result.stopped) return std::optional<EvaluatedGroups>();
  warn_of_failures("evaluation", result.failures);
  EvaluatedGroups out{.evaluation = summarize(result.groups, recipe.evaluation.breakdown)};
  Evaluation& evaluation = out.evaluation;
  evaluation.response_length = static_cast<double>(result.valid_cost.tokens.completion) /
                               static_cast<double>(std::max<std::int64_t>(1, evaluation.success.trials));
  evaluation.seconds = result.seconds;
  evaluation.cost = EvaluationCost{.requests = endpoint->requests(),
                                   .prompt_tokens = result.cost.tokens.prompt,
                                   .completion_tokens = result.cost.tokens.completion};
  out.groups = std::move(result.groups);
  out.failures = std::move(result.failures);
  if (!request.transcripts.empty()) {
    const std::vector<std::string_view> lines(result.transcripts.begin(), result.transcripts.end());
    if (const Status written = write_file_atomically(request.transcripts, lines); !written) return written.error();
  }
  return std::optional(std::move(out));
}

}  // namespace

Result<RunEnd> run_evaluation(const EvaluationRequest& request, const RunControl& control) {
  if (const Status flags = check_flags(request); !flags) return flags.error();
  auto evaluated = read_recipe(request);
  if (!evaluated) return evaluated.error();
  if (const Status chosen = choose_model(request, *evaluated); !chosen) return chosen.error();
  const bool remote = !request.endpoint.url.empty();
  auto result =
      remote ? evaluate_remotely(request, control, *evaluated) : evaluate_locally(request, control, *evaluated);
  if (!result) return result.error();
  if (!*result) return RunEnd::Interrupted;
  const Recipe& recipe = evaluated->recipe;
  if (request.json) {
    control.out << evaluation_json((*result)->evaluation) << "\n";
  } else {
    control.out << evaluated->name << "\n"
                << evaluation_table({{"success and more", (*result)->evaluation}}, recipe.evaluation.breakdown);
  }
  note_few_tasks(recipe);
  const std::string name = evaluated->checkpoint ? evaluated->checkpoint->filename().string() : evaluated->name;
  if (const Status status = check_evaluation(name, **result, recipe); !status) return status.error();
  return RunEnd::Complete;
}

}  // namespace carnot
