#include "carnot/cli/run_commands.h"

#include <cmath>
#include <ostream>

#include "carnot/base/aligned_memory.h"
#include "carnot/base/log.h"
#include "carnot/base/printable.h"
#include "carnot/cli/list.h"
#include "carnot/cli/stop_signals.h"
#include "carnot/cli/terminal_text.h"
#include "carnot/generate/jobs.h"
#include "carnot/run/export.h"
#include "carnot/run/run.h"
#include "carnot/study/analyze.h"
#include "carnot/study/comparison.h"
#include "carnot/study/explanation.h"

namespace carnot {
namespace {

RunControl prepare_run(const Console& console, StopLeaves leaves) {
  catch_stop_signals(leaves);
  keep_freed_memory();
  log_to_console(LogLevel::Info);
  return {
      .out = console.out, .terminal = console.terminal, .columns = terminal_columns, .stop_requested = stop_requested};
}

/// Until here, loading and reading end at the first signal.
JobControl prepare_job(const Console& console) {
  catch_stop_signals(StopLeaves::Nothing);
  const auto shown = [safe = console.terminal](std::string_view text) {
    return safe ? printable(text) : std::string(text);
  };
  return {.out = console.out, .shown = shown, .stop_requested = stop_requested};
}

ModelRequest request_of(const ModelChoice& model) {
  return {
      .path = model.path, .chat = model.chat, .device = model.device, .dtype = model.dtype, .threads = model.threads};
}

GenerateCommand command_of(const GenerateRequest& request) {
  return {.model = request_of(request.model),
          .prompts = request.prompts,
          .messages = request.messages,
          .input = request.input,
          .system = request.system,
          .raw = request.raw,
          .json = request.json,
          .temperature = request.temperature,
          .top_p = request.top_p,
          .top_k = request.top_k,
          .options = {.samples = request.samples,
                      .max_tokens = request.max_tokens,
                      .stop_strings = request.stop,
                      .seed = request.seed,
                      .batch = request.batch,
                      .cache_tokens = request.cache_tokens}};
}

Exit ended(const Result<RunEnd>& end, const Console& console) {
  console.out << std::flush;
  if (!end) return report(console, end.error());
  return *end == RunEnd::Interrupted ? Exit::Interrupted : Exit::Success;
}

Result<RunEnd> run(RunRequest::Stage stage, Recipe& recipe, const RunControl& control) {
  if (stage == RunRequest::Stage::Sft) return run_sft(recipe, control);
  if (stage == RunRequest::Stage::Rollout) return run_rollout(recipe, control);
  return run_training(recipe, control);
}

std::vector<ColumnNeed> explanation_needs(const Method& method) {
  std::vector<ColumnNeed> needs;
  for (const Column column : explained_columns(method.objective))
    needs.push_back({.column = column, .reader = "--explain"});
  return needs;
}

std::vector<TokenLists> token_lists(const Explanation& explanation) {
  std::vector<TokenLists> rows;
  for (const TokenExplanation& tokens : explanation.trajectories) {
    std::vector<std::string> states(tokens.clip_state.size());
    for (std::size_t t = 0; t < states.size(); ++t)
      if (!std::isnan(tokens.ratio[t])) states[t] = name_of(tokens.clip_state[t]);
    rows.push_back({{"ratio", tokens.ratio}, {"clip_state", states}, {"gradient", tokens.gradient}});
    if (!tokens.scaled_advantage.empty()) rows.back()["scaled_advantage"] = tokens.scaled_advantage;
    if (tokens.value_gradient.empty()) continue;
    rows.back()["value_loss"] = tokens.value_loss;
    rows.back()["value_gradient"] = tokens.value_gradient;
  }
  return rows;
}

MemoryStage memory_stage(RunRequest::Stage stage) {
  if (stage == RunRequest::Stage::Sft) return MemoryStage::Sft;
  return stage == RunRequest::Stage::Rollout ? MemoryStage::Rollout : MemoryStage::Training;
}

Result<Recipe> recipe_of(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  return path.empty() ? Recipe::parse("", "default recipe", overrides) : Recipe::load(path, overrides);
}

}  // namespace

Exit execute(const RunRequest& request, const Console& console) {
  log_to_console(LogLevel::Info);
  auto recipe = recipe_of(request.recipe, request.overrides);
  if (!recipe) return report(console, recipe.error());
  if (request.dry_run) {
    warn(console, recipe->method.warnings);
    const Status fits = dry_run(*recipe, memory_stage(request.stage), console.out);
    console.out << std::flush;
    return fits ? Exit::Success : report(console, fits.error());
  }
  const bool trains = request.stage != RunRequest::Stage::Rollout;
  const StopLeaves leaves = trains ? StopLeaves::Checkpoint : StopLeaves::Nothing;
  return ended(run(request.stage, *recipe, prepare_run(console, leaves)), console);
}

Exit execute(const CompareRequest& request, const Console& console) {
  auto plan = plan_comparison({.recipe = request.recipe,
                               .methods = request.methods,
                               .seeds = request.seeds,
                               .base = request.base,
                               .output = request.output,
                               .settings = request.overrides});
  if (!plan) return report(console, plan.error());
  if (request.dry_run) {
    console.out << plan_text(*plan) << std::flush;
    return Exit::Success;
  }
  return ended(run_comparison(*plan, prepare_run(console, StopLeaves::Checkpoint)), console);
}

Exit execute(const EvaluateRequest& request, const Console& console) {
  const EvaluationRequest evaluation{.path = request.path, .overrides = request.overrides, .json = request.json};
  return ended(run_evaluation(evaluation, prepare_run(console, StopLeaves::Nothing)), console);
}

Exit execute(const GenerateRequest& request, const Console& console) {
  keep_freed_memory();
  log_to_console(LogLevel::Info);
  const auto job = prepare_generate(command_of(request), console.in);
  if (!job) return report(console, job.error());
  return ended(run_generate(*job, prepare_job(console)), console);
}

Exit execute(const ScoreRequest& request, const Console& console) {
  keep_freed_memory();
  log_to_console(LogLevel::Info);
  const auto job = prepare_score({.model = request_of(request.model),
                                  .input = request.input,
                                  .temperature = request.temperature,
                                  .batch_tokens = request.batch_tokens},
                                 console.in);
  if (!job) return report(console, job.error());
  return ended(run_score(*job, prepare_job(console)), console);
}

Exit execute(const AnalyzeRequest& request, const Console& console) {
  AnalysisRequest analysis{.name = request.name, .output = request.output};
  for (const std::string& argument : request.arguments) {
    if (argument.find('=') == std::string::npos) {
      analysis.paths.emplace_back(argument);
    } else {
      analysis.overrides.push_back(argument);
    }
  }
  const auto report = analyze(analysis, prepare_run(console, StopLeaves::Nothing));
  if (!report) return carnot::report(console, report.error());
  console.out << text_table(finding_rows(*report)) << "\n";
  for (const std::string& note : report->notes) console.out << note << "\n";
  console.out << "\nNumbers and page: " << (request.output / request.name).string() << ".json, .html\n" << std::flush;
  return Exit::Success;
}

Exit execute(const AnalysesRequest& request, const Console& console) {
  console.out << request.text;
  if (request.name.empty()) {
    console.out << (request.json ? analyses_json() : text_table(analysis_rows()));
    return Exit::Success;
  }
  const auto entry = find_analysis(request.name);
  if (!entry) return report(console, entry.error());
  console.out << "\n"
              << (*entry)->summary << " (arXiv:" << (*entry)->paper << "). Reads: " << name_of((*entry)->needs)
              << ".\n\nOptions of " << (*entry)->name << ":\n"
              << help_text(analysis_options(**entry));
  return Exit::Success;
}

Exit execute(const ExplainRequest& request, const Console& console) {
  const auto rows = credit_rows(request.credit, explanation_needs);
  if (!rows) return report(console, rows.error());
  warn(console, rows->method.warnings);
  const auto explanation = explain_steps(rows->method.objective, rows->all, rows->credit);
  if (!explanation) return report(console, explanation.error());
  for (const std::string& term : explanation->excluded) report(console, {"`gradient` leaves out " + term});
  return write_output(written_rows(*rows, token_lists(*explanation)), request.credit.output, console);
}

Exit execute(const ExportRequest& request, const Console& console) {
  const auto written = export_model({.path = request.path,
                                     .output = request.output,
                                     .merge_lora = request.merge_lora,
                                     .dtype = request.dtype,
                                     .shard_megabytes = request.shard_megabytes,
                                     .overwrite = request.overwrite});
  if (!written) return report(console, written.error());
  console.out << *written << std::flush;
  return Exit::Success;
}

Exit execute(const CompletionRequest& request, const Console& console) {
  auto recipe = recipe_of({}, {});
  if (!recipe) return report(console, recipe.error());
  std::vector<std::string> keys;
  const FieldTable table = recipe->table();
  for (const FieldRow& row : table.rows()) keys.push_back(row.key);
  console.out << completion_script(request.shell, command_usages(), keys) << std::flush;
  return Exit::Success;
}

Exit execute(const KeysRequest& request, const Console& console) {
  auto recipe = recipe_of(request.recipe, request.overrides);
  if (!recipe) return report(console, recipe.error());
  console.out << list_keys(recipe->table(), request.json) << std::flush;
  return Exit::Success;
}

Exit execute(const RunHelpRequest& request, const Console& console) {
  console.out << request.text << "Keys:\n" << std::flush;
  return execute(request.keys, console);
}

}  // namespace carnot
