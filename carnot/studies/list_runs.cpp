// What `carnot list runs` prints.
#include <array>
#include <cmath>
#include <cstdio>

#include "carnot/core/base/json.h"
#include "carnot/core/cli/list.h"
#include "carnot/core/cli/terminal_text.h"
#include "carnot/core/run/folder_lock.h"
#include "carnot/core/run/run_folder.h"
#include "carnot/studies/comparison_plan.h"
#include "carnot/studies/run_curves.h"

namespace carnot {
namespace {

std::string state_of(const std::filesystem::path& folder) {
  const LockState lock = lock_state(folder);
  if (lock == LockState::Held) return "running";
  if (is_finished(folder)) return "finished";
  return lock == LockState::Abandoned ? "dead" : "stopped";
}

OrderedJson number_or_null(double value) { return std::isfinite(value) ? OrderedJson(value) : OrderedJson(); }

Result<OrderedJson> run_json(const StudiedRun& run) {
  std::int64_t step = 0;
  double training_success = std::nan("");
  if (const auto metrics = RunFolder{run.folder}.metrics(); std::filesystem::exists(metrics)) {
    CARNOT_ASSIGN_OR_RETURN(const auto curves, read_metric_curves(metrics));
    const auto success = curves.find("env/" + run.environment + "/success");
    if (success != curves.end()) std::tie(step, training_success) = *success->second.rbegin();
  }
  return OrderedJson{{"run", run.folder.string()},
                     {"method", run.method},
                     {"step", step},
                     {"steps", run.number("train.steps", 0)},
                     {"success", number_or_null(success_after(run.folder))},
                     {"training_success", number_or_null(training_success)},
                     {"state", state_of(run.folder)}};
}

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return text.data();
}

std::string success_text(const OrderedJson& run) {
  if (run.at("success").is_number()) return percent(run.at("success"));
  return run.at("training_success").is_number() ? percent(run.at("training_success")) + " in training" : "-";
}

}  // namespace

/// The runs below a folder, a line for each, or a JSON object: what it trains, how far it is, and `state`:
///   running   a process is writing
///   finished  there is a summary.json
///   stopped   its process let go of the folder: Ctrl-C, or an error
///   dead      its process was killed
/// Success is that on validation tasks after training; until then that of the last training step.
Result<std::string> list_runs(const ListRequest& request) {
  CARNOT_ASSIGN_OR_RETURN(const auto runs, find_runs(std::span(&request.folder, 1)));
  OrderedJson list = OrderedJson::array();
  std::vector<std::vector<std::string>> rows{{"run", "method", "steps", "success", "state"}};
  for (const StudiedRun& found : runs) {
    CARNOT_ASSIGN_OR_RETURN(const auto run, run_json(found));
    rows.push_back({found.folder.string(), found.method,
                    std::to_string(run.at("step").get<int>()) + " of " + std::to_string(run.at("steps").get<int>()),
                    success_text(run), run.at("state")});
    list.push_back(run);
  }
  return request.json ? list.dump(2) + "\n" : text_table(rows);
}

}  // namespace carnot
