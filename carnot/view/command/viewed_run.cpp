#include "carnot/view/command/viewed_run.h"

#include <algorithm>
#include <array>

#include "carnot/core/base/file.h"
#include "carnot/core/method/contestants.h"
#include "carnot/core/run/find_run.h"
#include "carnot/core/run/run_folder.h"
#include "carnot/view/alarm_notes.h"
#include "carnot/view/command/after_step.h"
#include "carnot/view/run_curves.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// A method of the page, and what its head says.
struct Wanted {
  std::vector<PageMethod> methods{};
  std::vector<MethodHead> heads{};
};

void add_settings(MethodHead& head, const std::vector<FieldRow>& rows) {
  constexpr std::string_view kObjective = "objective.";
  constexpr std::array kShown = {"objective.clip_low", "objective.clip_high", "objective.dual_clip",
                                 "objective.kl_coefficient", "objective.kl_in_reward"};
  for (const FieldRow& row : rows) {
    const bool changes_page = !row.key.starts_with(kObjective) || std::ranges::count(kShown, row.key) > 0;
    if (row.type == "float" && changes_page) head.numbers.emplace_back(row.key, std::stod(row.value));
    if (row.key.starts_with(kObjective)) head.objective.emplace_back(row.key.substr(kObjective.size()), row.value);
  }
}

/// That of the rows.
Wanted recorded_method(const std::optional<Recipe>& recipe) {
  if (!recipe) return {.methods = {{.name = "credit of the rows"}}, .heads = {{.name = "credit of the rows"}}};
  Wanted wanted{.methods = {{.name = recipe->method.name, .method = recipe->method}},
                .heads = {{.name = recipe->method.name}}};
  ObjectiveOptions objective = recipe->method.objective;
  FieldTable table;
  table.add("", objective);
  for (const FieldRow& row : table.rows()) wanted.heads[0].objective.emplace_back(row.key, row.value);
  return wanted;
}

Result<Wanted> listed_methods(const std::string& list) {
  CARNOT_ASSIGN_OR_RETURN(const auto contestants, parse_contestants(list));
  Wanted wanted;
  for (const Contestant& one : contestants) {
    const CreditRequest request{.method = one.method, .overrides = one.settings};
    auto method = read_method(request);
    if (!method) return Error{one.name() + ": " + method.error().message};
    wanted.methods.push_back(
        {.name = one.name(), .composition = one.method, .settings = one.settings, .method = std::move(method).value()});
    wanted.heads.push_back({.name = one.name()});
    add_settings(wanted.heads.back(), method_settings(request).value());
  }
  return wanted;
}

/// Says of each method which signals the step lacks for it, unless an earlier step did.
void add_missing(PageHead& head, const ViewedStep& step) {
  for (std::size_t m = 0; m < head.methods.size(); ++m) {
    if (step.missing[m].empty() || !head.methods[m].missing.empty()) continue;
    head.methods[m].missing = step.missing[m];
    head.notes.push_back(head.methods[m].name + " is not shown: " + step.missing[m]);
  }
}

/// Adds the step's groups until the page has `bytes`; returns how many found no room.
std::size_t add_step(Page& page, const RolloutsOfStep& step, const ViewedStep& loaded, const AfterStep& after,
                     std::size_t bytes) {
  std::size_t first = 0, left_out = 0;
  for (std::size_t g = 0; g < loaded.rows.file.groups.size(); ++g) {
    const Group& group = loaded.rows.file.groups[g];
    const ViewedGroup viewed{.step = shown_step(step, group),
                             .group = &group,
                             .first = first,
                             .methods = loaded.methods,
                             .after = after.groups.empty() ? nullptr : &after.groups[g]};
    if (!page.add(viewed, bytes)) ++left_out;
    for (const Tree& tree : group.trees) first += tree.leaves.size();
  }
  return left_out;
}

std::vector<std::pair<std::string, std::string>> facts_of(const ViewedRun& run) {
  if (!run.recipe) return {};
  return {{"method", run.recipe->method.name},
          {"environment", run.recipe->environment_name},
          {"seed", std::to_string(run.recipe->run.seed)}};
}

/// The run's metrics so far; empty if there are none.
std::string metrics_of(const ViewedRun& run) {
  if (run.run.empty()) return "";
  auto metrics = read_file(RunFolder{run.run}.metrics());
  return metrics ? std::move(metrics).value() : std::string();
}

/// Adds the recipe of the run whose folder this is, if it is one.
Status add_run(ViewedRun& run, const fs::path& folder) {
  if (!fs::exists(folder / "config.yaml")) return Done{};
  CARNOT_ASSIGN_OR_RETURN(auto recipe, load_recorded(folder / "config.yaml", {}));
  run.run = folder;
  run.recipe = std::move(recipe);
  return Done{};
}

}  // namespace

Result<ViewedRun> find_viewed(const fs::path& path, const fs::path& tokenizer, bool growing) {
  ViewedRun run;
  auto steps = rollouts_at(path);
  if (!steps && !(growing && fs::exists(path / "config.yaml"))) return steps.error();
  if (steps) run.steps = std::move(steps).value();
  const fs::path file =
      fs::absolute(run.steps.empty() ? path / "rollouts" / "step_1.jsonl" : run.steps.front().path).lexically_normal();
  const fs::path folder = file.parent_path().parent_path();
  CARNOT_RETURN_IF_ERROR(add_run(run, folder));
  run.title = fs::is_directory(path) ? folder.filename().string() : file.filename().string();
  if (!run.run.empty() && !fs::is_directory(path)) run.title = folder.filename().string() + ", " + run.title;
  run.tokenizer_path = tokenizer.empty() ? tokenizer_beside(file) : tokenizer;
  if (run.tokenizer_path.empty()) return run;
  CARNOT_ASSIGN_OR_RETURN(auto loaded, Tokenizer::load(run.tokenizer_path));
  run.tokenizer = std::move(loaded);
  return run;
}

Result<ViewedStep> load_step(const ViewedRun& run, const RolloutsOfStep& step, const std::vector<PageMethod>& methods) {
  CARNOT_ASSIGN_OR_RETURN(auto loaded, view_step(step.path, methods));
  if (run.tokenizer)
    for (const Trajectory& trajectory : loaded.rows.all)
      CARNOT_RETURN_IF_ERROR(check_tokens(trajectory, *run.tokenizer, run.tokenizer_path));
  return loaded;
}

std::int64_t shown_step(const RolloutsOfStep& step, const Group& group) {
  return step.step >= 0 ? step.step : group.step;
}

std::vector<std::string> alarms_of(const ViewedRun& run) { return alarm_notes(metrics_of(run)); }

OrderedJson curves_of(const ViewedRun& run) { return run_curves(metrics_of(run)); }

Result<ViewedPage> make_page(const ViewedRun& run, const PageRequest& request) {
  Page page(run.tokenizer ? &*run.tokenizer : nullptr);
  CARNOT_ASSIGN_OR_RETURN(auto wanted, request.methods.empty() ? Result<Wanted>(recorded_method(run.recipe))
                                                               : listed_methods(request.methods));
  PageHead head{.title = run.title,
                .facts = facts_of(run),
                .notes = request.notes,
                .methods = std::move(wanted.heads),
                .curves = curves_of(run)};
  for (const RolloutsOfStep& step : run.steps) head.steps.push_back(step.step);
  if (!run.tokenizer) head.notes.push_back("No tokenizer was found: tokens are shown as ids. --tokenizer names one.");
  std::size_t groups = 0, left_out = 0;
  for (std::size_t i = 0; i < request.steps.size(); ++i) {
    CARNOT_ASSIGN_OR_RETURN(const auto loaded, load_step(run, request.steps[i], wanted.methods));
    AfterStep after;
    if (request.after) {
      CARNOT_ASSIGN_OR_RETURN(after, measure_after(run.run, request.steps[i].step, loaded.rows.file.groups));
      if (after.checkpoint >= 0)
        head.after[request.steps[i].step] = after.checkpoint;
      else
        head.notes.push_back("Step " + std::to_string(request.steps[i].step) +
                             " is not measured under later weights: the run has no checkpoint from there on.");
    }
    const std::size_t without_room =
        add_step(page, request.steps[i], loaded, after, request.bytes * (i + 1) / request.steps.size());
    groups += loaded.rows.file.groups.size() - without_room;
    add_missing(head, loaded);
    head.notes.insert(head.notes.end(), loaded.notes.begin(), loaded.notes.end());
    left_out += without_room;
  }
  if (left_out > 0)
    head.notes.push_back(
        std::to_string(left_out) + " of " + std::to_string(groups + left_out) +
        " groups found no room and were left out; --steps chooses fewer steps, --megabytes makes room.");
  return ViewedPage{.page = std::move(page), .head = std::move(head), .groups = groups};
}

}  // namespace carnot
