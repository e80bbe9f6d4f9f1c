#include "carnot/core/base/file.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/run/console_lines.h"
#include "carnot/core/run/stages.h"
#include "carnot/core/run/stopping.h"
#include "carnot/core/train/infra_failures.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// Keeps an evaluation in validation/NAME.json, its trajectories in validation/NAME.jsonl.
Status store_evaluation(const fs::path& folder, const std::string& name, const EvaluatedGroups& stored,
                        const Tokenizer& tokenizer) {
  CARNOT_RETURN_IF_ERROR(make_folder(folder));
  const auto decode = [&](std::span<const TokenId> tokens) { return tokenizer.decode(tokens); };
  CARNOT_RETURN_IF_ERROR(write_file_atomically(folder / (name + ".jsonl"), rollout_rows(stored.groups, {}, decode)));
  return write_file_atomically(folder / (name + ".json"), evaluation_json(stored.evaluation) + "\n");
}

}  // namespace

Result<EvaluatedGroups> load_evaluation(const std::filesystem::path& run_folder, const std::string& name,
                                        const std::string& breakdown) {
  CARNOT_ASSIGN_OR_RETURN(auto file, read_rollout_file(RunFolder{run_folder}.validation() / (name + ".jsonl")));
  EvaluatedGroups stored{.groups = std::move(file.groups)};
  stored.evaluation = summarize(stored.groups, breakdown);
  return stored;
}

std::optional<EvaluatedGroups> evaluate_with_bar(const EvaluationView& view, std::string_view title,
                                                 const Recipe& recipe, const ModelBundle& bundle, Engine& engine) {
  const EvaluationOptions& options = recipe.evaluation;
  RolloutEvents events = stoppable(view.control);
  events.on_progress = [&view](std::int64_t ended) { view.progress.update(ended); };
  view.progress.begin(title, num_evaluated_tasks(options, *recipe.environment) * options.samples);
  auto evaluated = evaluate({.group = *view.control.group,
                             .engine = engine,
                             .chat = *bundle.chat,
                             .environment = *recipe.environment,
                             .environment_name = recipe.environment_name,
                             .options = options,
                             .rollout = recipe.rollout.options,
                             .seed = static_cast<std::uint64_t>(recipe.run.seed)},
                            events);
  view.progress.end();
  if (evaluated) warn_of_failures("evaluation", evaluated->failures);
  return evaluated;
}

Status check_evaluation(const std::string& name, const EvaluatedGroups& evaluated, const Recipe& recipe) {
  const Status few =
      check_failures(count_failures(evaluated.groups), recipe.train.max_infra_failures, evaluated.failures);
  const std::string where = "evaluation " + name;
  const int longest = recipe.rollout.options.episode.max_context_tokens;
  const Status enough = few ? check_room(where, evaluated.groups, longest) : few;
  return enough ? enough : Error{where + ": " + enough.error().message};
}

Result<std::optional<EvaluatedGroups>> evaluation_stage(Run& run, const std::string& name, ModelBundle& bundle,
                                                        Engine& engine) {
  auto evaluated = evaluate_with_bar({run.progress, run.control}, "evaluation " + name, run.recipe, bundle, engine);
  if (!evaluated) return evaluated;
  run.progress.print(evaluation_line(name, evaluated->evaluation, run.progress.width()));
  CARNOT_RETURN_IF_ERROR(on_first_rank(*run.control.group, "writing an evaluation", [&] {
    return store_evaluation(run.folder.validation(), name, *evaluated, *bundle.tokenizer);
  }));
  CARNOT_RETURN_IF_ERROR(check_evaluation(name, *evaluated, run.recipe));
  return evaluated;
}

Result<std::optional<EvaluatedGroups>> kept_or_new_evaluation(Run& run, const std::string& name, ModelBundle& bundle,
                                                              Engine& engine) {
  Collectives& group = *run.control.group;
  const bool exists = group.rank() == 0 && std::filesystem::exists(run.folder.validation() / (name + ".jsonl"));
  if (!is_true_anywhere(group, exists, "looking for an evaluation")) return evaluation_stage(run, name, bundle, engine);
  auto kept =
      agreed(group, load_evaluation(run.folder.root, name, run.recipe.evaluation.breakdown), "loading an evaluation");
  if (!kept) return kept.error();
  return std::optional(std::move(kept).value());
}

}  // namespace carnot
