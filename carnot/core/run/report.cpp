#include "carnot/core/run/report.h"

#include <algorithm>
#include <cstdio>

#include "carnot/core/base/file.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/run/run_folder.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

bool solved(const Group& group) {
  for (const Tree& tree : group.trees)
    for (const Leaf& leaf : tree.leaves)
      if (leaf.valid()) return leaf.success;
  return false;
}

fs::path folder_of(const fs::path& run_folder) { return RunFolder{run_folder}.validation(); }

}  // namespace

std::optional<std::size_t> telling_task(const std::vector<Group>& before, const std::vector<Group>& after) {
  const std::size_t both = std::min(before.size(), after.size());
  for (std::size_t i = 0; i < both; ++i)
    if (!solved(before[i]) && solved(after[i])) return i;
  return both > 0 ? std::optional<std::size_t>(0) : std::nullopt;
}

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

Status store_evaluation(const fs::path& run_folder, const std::string& name, const EvaluatedGroups& stored,
                        const Tokenizer& tokenizer) {
  CARNOT_RETURN_IF_ERROR(make_folder(folder_of(run_folder)));
  const auto decode = [&](std::span<const TokenId> tokens) { return tokenizer.decode(tokens); };
  const Status rows =
      write_file_atomically(folder_of(run_folder) / (name + ".jsonl"), rollout_rows(stored.groups, {}, decode));
  if (!rows) return rows;
  return write_file_atomically(folder_of(run_folder) / (name + ".json"), evaluation_json(stored.evaluation) + "\n");
}

Result<EvaluatedGroups> load_evaluation(const fs::path& run_folder, const std::string& name,
                                        const std::string& breakdown) {
  CARNOT_ASSIGN_OR_RETURN(auto file, read_rollout_file(folder_of(run_folder) / (name + ".jsonl")));
  EvaluatedGroups stored{.groups = std::move(file.groups)};
  stored.evaluation = summarize(stored.groups, breakdown);
  return stored;
}

}  // namespace carnot
