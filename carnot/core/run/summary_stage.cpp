#include <algorithm>
#include <cstdio>
#include <ostream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/printable.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/run/machine_memory.h"
#include "carnot/core/run/stages.h"

namespace carnot {

namespace {

OrderedJson as_json(const EvaluatedGroups& evaluated) {
  return parse_json<OrderedJson>(evaluation_json(evaluated.evaluation), "evaluation").value();
}

bool solved(const Group& group) {
  for (const Tree& tree : group.trees)
    for (const Leaf& leaf : tree.leaves)
      if (leaf.valid()) return leaf.success;
  return false;
}

/// Index of the task to show: the first one that failed before and succeeds after; else the first that both have.
std::optional<std::size_t> telling_task(const std::vector<Group>& before, const std::vector<Group>& after) {
  const std::size_t both = std::min(before.size(), after.size());
  for (std::size_t i = 0; i < both; ++i)
    if (!solved(before[i]) && solved(after[i])) return i;
  return both > 0 ? std::optional<std::size_t>(0) : std::nullopt;
}

/// The whole text of the group's first trajectory, as the model read and wrote it, with its outcome.
std::string transcript(const Group& group, const Tokenizer& tokenizer) {
  if (group.trees.empty() || group.trees[0].leaves.empty()) return "(no trajectory)\n";
  const Trajectory view = trajectory(group, 0, 0, 0);
  std::string text = tokenizer.decode(view.tokens());
  if (text.empty() || text.back() != '\n') text += "\n";
  char end[64];
  std::snprintf(end, sizeof end, "[%s, score %g]\n", std::string(name_of(view.leaf().outcome)).c_str(),
                view.leaf().score);
  return text + end;
}

/// One question answered twice.
void print_question(Run& run, const Tokenizer& tokenizer, const EvaluatedGroups& before, const EvaluatedGroups& after) {
  const auto task = telling_task(before.groups, after.groups);
  if (!task) return;
  run.control.out << "\nOne question, before training:\n\n"
                  << printable(transcript(before.groups[*task], tokenizer)) << "\nThe same question, after:\n\n"
                  << printable(transcript(after.groups[*task], tokenizer));
}

}  // namespace

Status summary_stage(Run& run, const ModelBundle& bundle, const std::optional<EvaluatedGroups>& before,
                     const EvaluatedGroups& after) {
  const RunOptions& options = run.recipe.run;
  OrderedJson summary{{"environment", run.recipe.environment_name},
                      {"method", run.recipe.method.name},
                      {"seed", options.seed},
                      {"training_steps", run.trained_steps}};
  if (before) summary["before"] = as_json(*before);
  summary["after"] = as_json(after);
  const std::int64_t predicted = run.predicted_memory >> 20, measured = peak_resident_memory() >> 20;
  summary["memory"] = {{"predicted_peak_mib", predicted}, {"measured_peak_mib", measured}};
  CARNOT_RETURN_IF_ERROR(on_first_rank(*run.control.group, "writing the summary", [&] {
    return write_file_atomically(run.folder.root / "summary.json", summary.dump(2) + "\n");
  }));
  std::vector<std::pair<std::string, Evaluation>> columns{{"after", after.evaluation}};
  if (before) {
    columns.insert(columns.begin(), {"before", before->evaluation});
    print_question(run, *bundle.tokenizer, *before, after);
  }
  run.control.out << "\n"
                  << evaluation_table(columns, run.recipe.evaluation.breakdown, run.progress.width()) << "\n"
                  << run.dead.lines() << "Memory: " << measured << " MiB at the peak, " << predicted << " predicted"
                  << "\nRun folder: " << run.folder.root.string() << "\n";
  return Done{};
}

}  // namespace carnot
