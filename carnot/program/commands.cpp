#include "carnot/program/commands.h"

#include "carnot/built.h"
#include "carnot/core/commands/evaluate.h"
#include "carnot/core/commands/explain.h"
#include "carnot/core/commands/recipe_keys.h"
#include "carnot/program/entries.h"

namespace carnot {
namespace {

/// Null: this build leaves the command out.
struct CommandRow {
  std::string_view name;
  CommandEntry (*entry)();
};

CommandEntry credit_with_explainer() { return credit_entry(credit_explainer()); }

CommandEntry evaluate_with_apis() { return evaluate_entry(CARNOT_BUILT(serving, make_endpoint_flags)); }

CommandEntry list_with_topics() {
  return list_entry({{"analyses", CARNOT_BUILT(studies, list_analyses)},
                     {"keys", list_recipe_keys},
                     {"runs", CARNOT_BUILT(studies, list_runs)}});
}

const std::vector<CommandRow>& command_rows() {
  static const std::vector<CommandRow> rows = {
      {"train", train_entry},
      {"sft", sft_entry},
      {"rollout", rollout_entry},
      {"compare", CARNOT_BUILT(studies, compare_entry)},
      {"eval", evaluate_with_apis},
      {"generate", CARNOT_BUILT(serving, generate_entry)},
      {"score", CARNOT_BUILT(serving, score_entry)},
      {"serve", CARNOT_BUILT(serving, serve_entry)},
      {"import-rollouts", CARNOT_BUILT(serving, import_rollouts_entry)},
      {"worker", CARNOT_BUILT(remote_rollouts, worker_entry)},
      {"retriever", CARNOT_BUILT(retriever_command, retriever_entry)},
      {"import", import_entry},
      {"export", export_entry},
      {"view", CARNOT_BUILT(view_command, view_entry)},
      {"inspect", inspect_entry},
      {"credit", credit_with_explainer},
      {"grade", CARNOT_BUILT(grade_command, grade_entry)},
      {"analyze", CARNOT_BUILT(studies, analyze_entry)},
      {"list", list_with_topics},
      {"env", environment_entry},
      {"tool", CARNOT_BUILT(tool_command, tool_entry)},
      {"tokenize", tokenize_entry},
      {"completion", completion_entry},
      {"man", manual_entry},
      {"help", help_entry},
  };
  return rows;
}

CommandTable make_table() {
  CommandTable table{.version = CARNOT_VERSION, .print_recipe_keys = print_recipe_keys};
  for (const CommandRow& row : command_rows())
    if (row.entry != nullptr)
      table.commands.push_back(row.entry());
    else
      table.left_out.push_back(row.name);
  return table;
}

}  // namespace

const CommandTable& carnot_commands() {
  static const CommandTable table = make_table();
  return table;
}

void offer_cuda_statistics();
void offer_process_groups();
void offer_remote_rollouts();
void offer_sentence_encoders();
void offer_tools();
void offer_worlds();

void make_offers() {
  using Offer = void (*)();
  const Offer offers[] = {offer_worlds,
                          offer_tools,
                          CARNOT_BUILT(cuda_statistics, offer_cuda_statistics),
                          CARNOT_BUILT(ranks, offer_process_groups),
                          CARNOT_BUILT(remote_rollouts, offer_remote_rollouts),
                          CARNOT_BUILT(sentence_encoders, offer_sentence_encoders)};
  for (const Offer offer : offers)
    if (offer != nullptr) offer();
}

}  // namespace carnot
