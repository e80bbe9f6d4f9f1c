#include <sys/stat.h>

#include <ostream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/cli/command.h"
#include "carnot/core/cli/stop_signals.h"
#include "carnot/core/config/printer.h"
#include "carnot/view/command/view_server.h"
#include "carnot/view/command/viewed_run.h"
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
  bool after = false;
  bool follow = false;
  int port = 8090;
};

std::string steps_text(const std::vector<RolloutsOfStep>& steps) {
  std::string text;
  for (const RolloutsOfStep& one : steps) text += (text.empty() ? "" : ", ") + std::to_string(one.step);
  return text;
}

fs::path default_output(const ViewRequest& request) {
  if (fs::is_directory(request.path)) return request.path / "view.html";
  return fs::path(request.path).replace_extension(".html");
}

Result<std::string> write_page(const ViewRequest& request, const ViewedRun& run,
                               const std::vector<RolloutsOfStep>& chosen) {
  std::vector<std::string> notes = alarms_of(run);
  if (chosen.size() < run.steps.size())
    notes.push_back("Steps " + steps_text(chosen) + " of " + std::to_string(run.steps.size()) +
                    " are on this page; --steps chooses others.");
  CARNOT_ASSIGN_OR_RETURN(const auto made, make_page(run, {.steps = chosen,
                                                           .methods = request.methods,
                                                           .bytes = static_cast<std::size_t>(request.megabytes * 1e6),
                                                           .notes = std::move(notes),
                                                           .after = request.after}));
  const fs::path output = request.output.empty() ? default_output(request) : request.output;
  const std::string html = made.page.html(made.head, /*served=*/false);
  CARNOT_RETURN_IF_ERROR(write_file_atomically(output, html));
  std::string said = std::to_string(made.groups) + (made.groups == 1 ? " group" : " groups") + " in " +
                     output.string() + " (" + std::to_string(html.size() / 1000) + " kB); open it in a browser\n";
  for (const std::string& note : made.head.notes) said += note + "\n";
  return said;
}

std::int64_t changed_at(const fs::path& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 ? found.st_mtime : 0;
}

Result<std::string> write_logs(const ViewRequest& request, ViewedRun& run, const std::vector<RolloutsOfStep>& chosen) {
  if (!request.methods.empty()) return Error{"--methods: logs for Inspect hold the rows' own credit; leave it out"};
  if (!run.tokenizer)
    return Error{request.path.string() + ": has no tokenizer, and messages are texts; name it with --tokenizer"};
  CARNOT_RETURN_IF_ERROR(make_folder(request.inspect));
  InspectTask task{.task = "rollouts", .run = run.title, .model = "carnot/" + run.title};
  if (run.recipe) {
    task.task = run.recipe->environment_name;
    const FieldTable table = run.recipe->table();
    for (const FieldRow& row : table.rows()) task.settings[row.key] = row.value;
  }
  for (const RolloutsOfStep& step : chosen) {
    CARNOT_ASSIGN_OR_RETURN(const auto loaded, load_step(run, step, {}));
    task.step = loaded.rows.file.groups.empty() ? step.step : shown_step(step, loaded.rows.file.groups.front());
    task.made_at = changed_at(step.path);
    const Status written =
        write_file_atomically(request.inspect / inspect_file_name(task),
                              inspect_log(task, loaded.rows.file.groups, loaded.rows.credit, *run.tokenizer));
    if (!written) return written.error();
  }
  return std::to_string(chosen.size()) + (chosen.size() == 1 ? " log" : " logs") + " in " + request.inspect.string() +
         "; inspect view --log-dir " + request.inspect.string() + " shows them\n";
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
    take.flag("--after", request_.after,
              "measure the tokens under the weights after their step: of the first checkpoint from there on");
    take.flag("--follow", request_.follow, "serve the page over HTTP while the run trains, until Ctrl-C");
    take.count("--port", "N", request_.port, 0, "with --follow: to listen on; 0: any that is free; default: 8090");
    take.text("--tokenizer", "PATH", request_.tokenizer, "tokenizer.json or its folder; default: the run's");
  }

  Exit run(const Console& console) override {
    if (request_.follow) return follow(console);
    const auto said = write(request_);
    if (!said) return report(console, said.error());
    console.out << *said << std::flush;
    return Exit::Success;
  }

 private:
  static Result<std::string> write(const ViewRequest& request) {
    CARNOT_ASSIGN_OR_RETURN(auto run, find_viewed(request.path, request.tokenizer, /*growing=*/false));
    CARNOT_ASSIGN_OR_RETURN(const auto chosen, choose_steps(run.steps, request.steps, kStepsShown));
    return request.inspect.empty() ? write_page(request, run, chosen) : write_logs(request, run, chosen);
  }

  Exit follow(const Console& console) {
    std::vector<std::string> unused;
    if (!request_.steps.empty()) unused.emplace_back("--steps");
    if (!request_.output.empty()) unused.emplace_back("--output");
    if (!request_.inspect.empty()) unused.emplace_back("--inspect");
    if (request_.after) unused.emplace_back("--after");
    if (!unused.empty()) return report(console, Error{join(unused, ", ") + ": not with --follow; leave it out"});
    catch_stop_signals(StopLeaves::Nothing);
    return ended(follow_run({.path = request_.path,
                             .tokenizer = request_.tokenizer,
                             .methods = request_.methods,
                             .steps = kStepsShown,
                             .bytes = static_cast<std::size_t>(request_.megabytes * 1e6),
                             .port = request_.port},
                            console.out, stop_requested),
                 console);
  }

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
