// run/report.h -- what a run shows at its end: the table before and after, and one question answered twice.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/run/evaluation.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

/// Index of the task to show: the first one that failed before and succeeds after; else the first that both have.
std::optional<std::size_t> telling_task(const std::vector<Group>& before, const std::vector<Group>& after);

/// The whole text of the group's first trajectory, as the model read and wrote it, with its outcome.
std::string transcript(const Group& group, const Tokenizer& tokenizer);

/// Keeps an evaluation in validation/NAME.json, its trajectories in validation/NAME.jsonl.
Status store_evaluation(const std::filesystem::path& run_folder, const std::string& name, const EvaluatedGroups& stored,
                        const Tokenizer& tokenizer);

/// What store_evaluation kept; the evaluation's statistics are made again from its trajectories.
Result<EvaluatedGroups> load_evaluation(const std::filesystem::path& run_folder, const std::string& name,
                                        const std::string& breakdown);

}  // namespace carnot
