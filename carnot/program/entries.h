// program/entries.h -- a line for each command: the function that makes its entry; cli/entries.h has those without
// LibTorch. commands.cpp lists them.
#pragma once

#include <memory>

#include "carnot/core/cli/entries.h"

namespace carnot {

class ApiPolicyFlags;

// Commands that run models.
/// `api`: makes the flags of a policy behind an API; null: the build has no such policies.
CommandEntry evaluate_entry(std::unique_ptr<ApiPolicyFlags> (*api)());
CommandEntry export_entry();
CommandEntry import_entry();
CommandEntry rollout_entry();
CommandEntry sft_entry();
CommandEntry train_entry();

// Commands of annexes.
CommandEntry analyze_entry();
CommandEntry compare_entry();
CommandEntry generate_entry();
CommandEntry grade_entry();
CommandEntry retriever_entry();
CommandEntry score_entry();
CommandEntry import_rollouts_entry();
CommandEntry serve_entry();
CommandEntry tool_entry();
CommandEntry view_entry();
CommandEntry worker_entry();
Result<std::string> list_analyses(const ListRequest& request);
Result<std::string> list_runs(const ListRequest& request);
std::unique_ptr<ApiPolicyFlags> make_endpoint_flags();

// The program's own.
CommandEntry completion_entry();
CommandEntry manual_entry();

}  // namespace carnot
