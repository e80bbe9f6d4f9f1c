// view/inspect_log.h -- the trajectories of one step in the log format of Inspect (inspect.aisi.org.uk), version 2, so
// that `inspect view` shows them.
//
// A task is a sample, and its group's trajectories are the epochs of that sample. Messages are read from the spans of
// a trajectory, and their roles from the chat format's own words between them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

/// What a log says of the run.
struct InspectTask {
  std::string task{};   ///< the environment: "search_qa"
  std::string run{};    ///< the run folder's name
  std::string model{};  ///< "carnot/quickstart"
  std::int64_t step = 0;
  std::int64_t made_at = 0;                       ///< seconds since 1970: of the rollouts
  std::map<std::string, std::string> settings{};  ///< of the recipe, by dotted key
};

/// The log as JSON. `credit` is numbered as trajectories(groups), or empty. REQUIRES: the tokenizer has every token.
std::string inspect_log(const InspectTask& task, std::span<const Group> groups, const CreditTable& credit,
                        const Tokenizer& tokenizer);

/// The name that Inspect expects of the log's file: "2026-11-22T10-00-00+00-00_search-qa_quickstart-step-12.json".
std::string inspect_file_name(const InspectTask& task);

}  // namespace carnot
