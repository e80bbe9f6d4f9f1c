#include "carnot/studies/comparison.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/base/temporary_name.h"
#include "carnot/core/run/checkpoint.h"
#include "carnot/core/run/folder_lock.h"
#include "carnot/core/run/progress.h"
#include "carnot/core/run/run_folder.h"
#include "carnot/studies/comparison_report.h"
#include "carnot/studies/remaining_time.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// While it lives, messages go to a run's log and not to the console.
class LogInto {
 public:
  explicit LogInto(std::ostream& out)
      : before_(set_log_sink([&out](LogLevel, const std::string& message) { out << message << std::endl; })) {}
  ~LogInto() { set_log_sink(std::move(before_)); }
  LogInto(const LogInto&) = delete;
  LogInto& operator=(const LogInto&) = delete;

 private:
  LogSink before_;
};

using Command = Result<RunEnd> (*)(Recipe&, const RunControl&);

/// Runs with the run's own text in its folder. A bug inside one run must not cost the others: what it throws is an
/// error. A complete run is not continued: its checkpoints lose their optimizers.
Result<RunEnd> run_apart(Command command, Recipe& recipe, const RunControl& control) {
  const fs::path folder = recipe.run.run_folder;
  CARNOT_RETURN_IF_ERROR(make_folder(folder));
  std::ofstream out(folder / "log.txt", std::ios::app);
  if (!out) return Error{(folder / "log.txt").string() + ": cannot be written"};
  const LogInto into(out);
  try {
    auto end = command(recipe, {.out = out, .stop_requested = control.stop_requested});
    if (!end) out << end.error().message << std::endl;
    if (end && *end == RunEnd::Complete) CARNOT_RETURN_IF_ERROR(drop_optimizers(RunFolder{folder}.checkpoints()));
    return end;
  } catch (const std::exception& exception) {
    const std::string what = exception.what();  // LibTorch puts a stack trace below the first line
    out << what << std::endl;
    return Error{"internal error: " + what.substr(0, what.find('\n'))};
  }
}

class Comparer {
 public:
  Comparer(ComparisonPlan& plan, const RunControl& control) : plan_(plan), control_(control) {}

  Result<RunEnd> run() {
    total_ = static_cast<std::int64_t>(plan_.contestants.size() * plan_.seeds.size());
    for (const PlannedSeed& planned : plan_.seeds)
      done_ += std::count_if(planned.runs.begin(), planned.runs.end(),
                             [](const Recipe& recipe) { return is_finished(recipe.run.run_folder); });
    control_.out << plan_.recipe << ": " << total_ << " runs (" << plan_.contestants.size() << " methods, "
                 << plan_.seeds.size() << " seeds) in " << plan_.output.string() << "\n";
    if (done_ > 0) control_.out << done_ << " of them are there already\n";
    for (const LeftOut& left : plan_.left_out) control_.out << "left out: " << left.name << ": " << left.reason << "\n";
    for (const std::string& note : plan_.notes) control_.out << "note: " << note << "\n";
    control_.out << std::flush;
    for (PlannedSeed& planned : plan_.seeds) {
      const auto end = run_seed(planned);
      if (!end) return end;
      if (*end == RunEnd::Interrupted) return interrupted();
    }
    return finish();
  }

 private:
  Result<RunEnd> run_seed(PlannedSeed& planned) {
    Recipe& start = planned.start;
    const std::string who = "seed " + std::to_string(planned.seed) + "  ";
    if (!is_start_finished(start.run.run_folder)) {
      const Stopwatch watch;
      const auto end = run_apart(start.sft.steps > 0 ? run_sft : run_training, start, control_);
      if (!end || *end != RunEnd::Complete) return end;
      const double took = watch.seconds();
      remaining_.add_start(took);
      say(who + "start  " + clock_time(took));
    }
    for (std::size_t c = 0; c < planned.runs.size(); ++c) {
      if (control_.stop_requested()) return RunEnd::Interrupted;
      Recipe& recipe = planned.runs[c];
      if (is_finished(recipe.run.run_folder)) continue;
      const Stopwatch watch;
      const auto end = run_apart(run_training, recipe, control_);
      if (end && *end == RunEnd::Interrupted) return end;
      const double took = watch.seconds();
      if (end) remaining_.add_run(took);
      if (!end) problems_[recipe.run.run_folder] = end.error().message;
      if (end && *end == RunEnd::Alarm) problems_[recipe.run.run_folder] = "an alarm ended it (alarm.stop)";
      ++done_;
      CARNOT_ASSIGN_OR_RETURN(const auto written, write_report());
      say(who + line_of(written.contestants[c], planned.seed) + "  " + clock_time(took) + "  " + place());
    }
    return RunEnd::Complete;
  }

  void say(const std::string& line) const { control_.out << line << "\n" << std::flush; }

  std::int64_t starts_left() const {
    return std::count_if(plan_.seeds.begin(), plan_.seeds.end(),
                         [](const PlannedSeed& planned) { return !is_start_finished(planned.start.run.run_folder); });
  }

  /// "(3 of 15, about 1:20 left)"
  std::string place() const {
    std::string text = "(" + std::to_string(done_) + " of " + std::to_string(total_);
    const auto left = remaining_.estimate(starts_left(), total_ - done_);
    if (left && done_ < total_) text += ", about " + clock_time(*left) + " left";
    return text + ")";
  }

  std::string line_of(const ContestantResult& contestant, std::int64_t seed) const {
    const auto run = std::find_if(contestant.runs.begin(), contestant.runs.end(),
                                  [&](const ContestRun& one) { return one.seed == seed; });
    if (!run->finished) return contestant.name + "  failed: " + run->problem;
    char text[48];
    std::snprintf(text, sizeof text, "  %.1f %% -> %.1f %%", 100 * run->before, 100 * run->after);
    return contestant.name + text;
  }

  Result<Comparison> write_report() {
    auto comparison = read_comparison(plan_, problems_);
    if (!comparison) return comparison;
    CARNOT_RETURN_IF_ERROR(write_comparison(*comparison, plan_.output));
    return comparison;
  }

  Result<RunEnd> interrupted() {
    CARNOT_RETURN_IF_ERROR(write_report());
    control_.out << "Stopped with " << done_ << " of " << total_ << " runs done. To continue: the same command\n";
    return RunEnd::Interrupted;
  }

  Result<RunEnd> finish() {
    CARNOT_ASSIGN_OR_RETURN(const auto comparison, write_report());
    control_.out << "\n"
                 << comparison_markdown(comparison) << "\nReport: " << (plan_.output / "report.html").string() << "\n";
    if (problems_.empty()) return RunEnd::Complete;
    std::vector<std::string> lines;
    for (const auto& [folder, problem] : problems_) lines.push_back(folder + ": " + problem);
    return join_errors(lines);
  }

  ComparisonPlan& plan_;
  const RunControl& control_;
  RemainingTime remaining_{};
  RunProblems problems_{};
  std::int64_t total_ = 0;
  std::int64_t done_ = 0;  ///< runs that are there, or failed
};

}  // namespace

Result<RunEnd> run_comparison(ComparisonPlan& plan, const RunControl& control) {
  CARNOT_ASSIGN_OR_RETURN(const auto lock, FolderLock::take(plan.output));
  CARNOT_RETURN_IF_ERROR(remove_temporaries(plan.output));
  return Comparer(plan, control).run();
}

}  // namespace carnot
