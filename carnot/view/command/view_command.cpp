#include <sys/stat.h>

#include <optional>
#include <ostream>

#include "carnot/core/base/file.h"
#include "carnot/core/cli/command.h"
#include "carnot/core/cli/run_files.h"
#include "carnot/core/config/printer.h"
#include "carnot/core/method/contestants.h"
#include "carnot/core/run/find_run.h"
#include "carnot/core/run/run_folder.h"
#include "carnot/view/alarm_notes.h"
#include "carnot/view/command/viewed_step.h"
#include "carnot/view/inspect_log.h"
#include "carnot/view/page.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kStepsShown = 5;  ///< where none are named

struct ViewRequest {
  fs::path path{};                   ///< a run folder, or a file of rollouts
  std::vector<std::string> steps{};  ///< empty: kStepsShown of them
  fs::path output{};                 ///< of the page; empty: next to what is shown
  fs::path inspect{};                ///< folder for Inspect's logs; empty: a page is written
  fs::path tokenizer{};              ///< empty: the run's
  double megabytes = 64;
  std::string methods{};  ///< to compute credit by; empty: as the rows hold it
};

/// What a path leads to.
struct Source {
  fs::path run{};  ///< the run's folder; may be empty
  std::string title{};
  std::vector<RolloutsOfStep> all{}, chosen{};
  std::optional<Tokenizer> tokenizer{};
  fs::path tokenizer_path{};
  std::optional<Recipe> recipe{};
  std::vector<PageMethod> methods{};
};

std::vector<std::pair<std::string, std::string>> settings_of(ObjectiveOptions objective) {
  FieldTable table;
  table.add("", objective);
  std::vector<std::pair<std::string, std::string>> settings;
  for (const FieldRow& row : table.rows()) settings.emplace_back(row.key, row.value);
  return settings;
}

/// The methods that the user lists, else that of the rows.
Result<std::vector<PageMethod>> find_methods(const ViewRequest& request, const std::optional<Recipe>& recipe) {
  if (request.methods.empty() && !recipe) return std::vector{PageMethod{.name = "credit of the rows"}};
  if (request.methods.empty()) return std::vector{PageMethod{.name = recipe->method.name, .method = recipe->method}};
  CARNOT_ASSIGN_OR_RETURN(const auto contestants, parse_contestants(request.methods));
  std::vector<PageMethod> methods;
  for (const Contestant& one : contestants) {
    auto method = read_method({.method = one.method, .overrides = one.settings});
    if (!method) return Error{one.name() + ": " + method.error().message};
    methods.push_back(
        {.name = one.name(), .composition = one.method, .settings = one.settings, .method = std::move(method).value()});
  }
  return methods;
}

Result<Source> find_source(const ViewRequest& request) {
  CARNOT_ASSIGN_OR_RETURN(auto all, rollouts_at(request.path));
  CARNOT_ASSIGN_OR_RETURN(auto chosen, choose_steps(all, request.steps, kStepsShown));
  Source source{.all = std::move(all), .chosen = std::move(chosen)};
  const fs::path file = fs::absolute(source.chosen.front().path).lexically_normal();
  const fs::path folder = file.parent_path().parent_path();
  source.title = fs::is_directory(request.path) ? folder.filename().string() : file.filename().string();
  if (fs::exists(folder / "config.yaml")) {
    CARNOT_ASSIGN_OR_RETURN(auto recipe, load_recorded(folder / "config.yaml", {}));
    source.run = folder;
    source.recipe = std::move(recipe);
    if (!fs::is_directory(request.path)) source.title = folder.filename().string() + ", " + source.title;
  }
  CARNOT_ASSIGN_OR_RETURN(source.methods, find_methods(request, source.recipe));
  source.tokenizer_path = request.tokenizer.empty() ? tokenizer_beside(file) : request.tokenizer;
  if (source.tokenizer_path.empty()) return source;
  CARNOT_ASSIGN_OR_RETURN(auto tokenizer, Tokenizer::load(source.tokenizer_path));
  source.tokenizer = std::move(tokenizer);
  return source;
}

Result<ViewedStep> load_step(const Source& source, const RolloutsOfStep& step) {
  CARNOT_ASSIGN_OR_RETURN(auto loaded, view_step(step.path, source.methods));
  if (source.tokenizer)
    for (const Trajectory& trajectory : loaded.rows.all)
      CARNOT_RETURN_IF_ERROR(check_tokens(trajectory, *source.tokenizer, source.tokenizer_path));
  return loaded;
}

std::int64_t shown_step(const RolloutsOfStep& source, const Group& group) {
  return source.step >= 0 ? source.step : group.step;
}

/// Adds the step's groups until the page has `bytes`; returns how many found no room.
std::size_t add_step(Page& page, const RolloutsOfStep& source, const ViewedStep& loaded, std::size_t bytes) {
  std::size_t first = 0, left_out = 0;
  for (const Group& group : loaded.rows.file.groups) {
    if (!page.add({.step = shown_step(source, group), .group = &group, .first = first, .methods = loaded.methods},
                  bytes))
      ++left_out;
    for (const Tree& tree : group.trees) first += tree.leaves.size();
  }
  return left_out;
}

std::vector<MethodHead> methods_of(const Source& source) {
  std::vector<MethodHead> heads;
  for (const PageMethod& one : source.methods) {
    heads.push_back({.name = one.name});
    if (one.method) heads.back().objective = settings_of(one.method->objective);
  }
  return heads;
}

/// Says of each method which signals the step lacks for it, unless an earlier step did.
void add_missing(PageHead& head, const ViewedStep& step) {
  for (std::size_t m = 0; m < head.methods.size(); ++m) {
    if (step.missing[m].empty() || !head.methods[m].missing.empty()) continue;
    head.methods[m].missing = step.missing[m];
    head.notes.push_back(head.methods[m].name + " is not shown: " + step.missing[m]);
  }
}

std::string steps_text(const std::vector<RolloutsOfStep>& steps) {
  std::string text;
  for (const RolloutsOfStep& one : steps) text += (text.empty() ? "" : ", ") + std::to_string(one.step);
  return text;
}

fs::path default_output(const ViewRequest& request) {
  if (fs::is_directory(request.path)) return request.path / "view.html";
  return fs::path(request.path).replace_extension(".html");
}

std::vector<std::pair<std::string, std::string>> facts_of(const Source& source) {
  if (!source.recipe) return {};
  return {{"method", source.recipe->method.name},
          {"environment", source.recipe->environment_name},
          {"seed", std::to_string(source.recipe->run.seed)}};
}

std::vector<std::string> alarms_of(const Source& source) {
  if (source.run.empty()) return {};
  const auto metrics = read_file(RunFolder{source.run}.metrics());
  return metrics ? alarm_notes(*metrics) : std::vector<std::string>();
}

Result<std::string> write_page(const ViewRequest& request, const Source& source) {
  Page page(source.tokenizer ? &*source.tokenizer : nullptr);
  PageHead head{
      .title = source.title, .facts = facts_of(source), .notes = alarms_of(source), .methods = methods_of(source)};
  if (source.chosen.size() < source.all.size())
    head.notes.push_back("Steps " + steps_text(source.chosen) + " of " + std::to_string(source.all.size()) +
                         " are on this page; --steps chooses others.");
  if (!source.tokenizer)
    head.notes.push_back("No tokenizer was found: tokens are shown as ids. --tokenizer names one.");
  const double bytes = request.megabytes * 1e6;
  std::size_t groups = 0, left_out = 0;
  for (std::size_t i = 0; i < source.chosen.size(); ++i) {
    CARNOT_ASSIGN_OR_RETURN(const auto loaded, load_step(source, source.chosen[i]));
    const double share = static_cast<double>(i + 1) / static_cast<double>(source.chosen.size());
    const std::size_t without_room = add_step(page, source.chosen[i], loaded, static_cast<std::size_t>(bytes * share));
    groups += loaded.rows.file.groups.size() - without_room;
    add_missing(head, loaded);
    head.notes.insert(head.notes.end(), loaded.notes.begin(), loaded.notes.end());
    left_out += without_room;
  }
  if (left_out > 0)
    head.notes.push_back(
        std::to_string(left_out) + " of " + std::to_string(groups + left_out) +
        " groups found no room and were left out; --steps chooses fewer steps, --megabytes makes room.");
  const fs::path output = request.output.empty() ? default_output(request) : request.output;
  const std::string html = page.html(head);
  CARNOT_RETURN_IF_ERROR(write_file_atomically(output, html));
  std::string said = std::to_string(groups) + (groups == 1 ? " group" : " groups") + " in " + output.string() + " (" +
                     std::to_string(html.size() / 1000) + " kB); open it in a browser\n";
  for (const std::string& note : head.notes) said += note + "\n";
  return said;
}

std::int64_t changed_at(const fs::path& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 ? found.st_mtime : 0;
}

Result<std::string> write_logs(const ViewRequest& request, Source& source) {
  if (!request.methods.empty()) return Error{"--methods: logs for Inspect hold the rows' own credit; leave it out"};
  if (!source.tokenizer)
    return Error{request.path.string() + ": has no tokenizer, and messages are texts; name it with --tokenizer"};
  CARNOT_RETURN_IF_ERROR(make_folder(request.inspect));
  InspectTask task{.task = "rollouts", .run = source.title, .model = "carnot/" + source.title};
  if (source.recipe) {
    task.task = source.recipe->environment_name;
    const FieldTable table = source.recipe->table();
    for (const FieldRow& row : table.rows()) task.settings[row.key] = row.value;
  }
  for (const RolloutsOfStep& step : source.chosen) {
    CARNOT_ASSIGN_OR_RETURN(const auto loaded, load_step(source, step));
    task.step = loaded.rows.file.groups.empty() ? step.step : shown_step(step, loaded.rows.file.groups.front());
    task.made_at = changed_at(step.path);
    const Status written =
        write_file_atomically(request.inspect / inspect_file_name(task),
                              inspect_log(task, loaded.rows.file.groups, loaded.rows.credit, *source.tokenizer));
    if (!written) return written.error();
  }
  return std::to_string(source.chosen.size()) + (source.chosen.size() == 1 ? " log" : " logs") + " in " +
         request.inspect.string() + "; inspect view --log-dir " + request.inspect.string() + " shows them\n";
}

class ViewCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("PATH", request_.path, "run folder, or a file of rollouts", Presence::Required);
    take.list("--steps", "STEPS", request_.steps, "steps and ranges, such as 1,5,10-20; default: five over the run");
    take.text("--methods", "LIST", request_.methods,
              "compute the credit of these methods and compare them: \"grpo, grpo + aem\"; default: the rows' own");
    take.text("--output", "FILE", request_.output, "page to write; default: PATH/view.html");
    take.number("--megabytes", "N", request_.megabytes, between(0.001, 1000),
                "of the page; groups that find no room are left out; default: 64");
    take.text("--inspect", "DIR", request_.inspect,
              "write logs for Inspect into this folder, one per step, and no page");
    take.text("--tokenizer", "PATH", request_.tokenizer, "tokenizer.json or its folder; default: the run's");
  }

  Exit run(const Console& console) override {
    auto source = find_source(request_);
    if (!source) return report(console, source.error());
    const auto said = request_.inspect.empty() ? write_page(request_, *source) : write_logs(request_, *source);
    if (!said) return report(console, said.error());
    console.out << *said << std::flush;
    return Exit::Success;
  }

 private:
  ViewRequest request_;
};

}  // namespace

CommandEntry view_entry() {
  return {.name = "view",
          .arguments = "PATH",
          .summary = "a run's trajectories as a page for the browser, or as Inspect's logs",
          .example = "runs/quickstart --steps 1,50-60",
          .make = make_command<ViewCommand>};
}

}  // namespace carnot
