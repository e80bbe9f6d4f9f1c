// cli/entries.h -- one line per file of commands; the table in commands.cpp lists them. Those of the first part do
// without LibTorch and are in the room `cli`.
#pragma once

#include <string>
#include <vector>

#include "carnot/cli/command.h"
#include "carnot/cli/credit.h"
#include "carnot/cli/list.h"

namespace carnot {

CommandEntry credit_entry(const CreditExplainer& explainer);
CommandEntry environment_entry();
CommandEntry inspect_entry();
/// With `further` topics after the room's own.
CommandEntry list_entry(const std::vector<ListTopic>& further);
CommandEntry retriever_entry();
CommandEntry tokenize_entry();
CommandEntry tool_entry();

CommandEntry analyze_entry();
CommandEntry compare_entry();
CommandEntry completion_entry();
CommandEntry evaluate_entry();
CommandEntry export_entry();
CommandEntry generate_entry();
CommandEntry import_entry();
CommandEntry manual_entry();
CommandEntry rollout_entry();
CommandEntry score_entry();
CommandEntry serve_entry();
CommandEntry sft_entry();
CommandEntry train_entry();
CommandEntry view_entry();
CommandEntry worker_entry();

}  // namespace carnot
