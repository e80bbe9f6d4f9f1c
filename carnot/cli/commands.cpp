#include "carnot/cli/commands.h"

#include "carnot/cli/entries.h"
#include "carnot/cli/explain.h"
#include "carnot/cli/recipe_keys.h"
#include "carnot/cli/run_list.h"
#include "carnot/cli/terminal_text.h"
#include "carnot/study/analyze.h"

namespace carnot {
namespace {

Result<std::string> list_analyses(const ListRequest& request) {
  return request.json ? analyses_json() : text_table(analysis_rows());
}

}  // namespace

const CommandTable& carnot_commands() {
  static const CommandTable table{
      .commands =
          {
              train_entry(),
              sft_entry(),
              rollout_entry(),
              compare_entry(),
              evaluate_entry(),
              generate_entry(),
              score_entry(),
              serve_entry(),
              worker_entry(),
              retriever_entry(),
              import_entry(),
              export_entry(),
              view_entry(),
              inspect_entry(),
              credit_entry(credit_explainer()),
              analyze_entry(),
              list_entry({{"analyses", list_analyses}, {"keys", list_recipe_keys}, {"runs", list_runs}}),
              environment_entry(),
              tool_entry(),
              tokenize_entry(),
              completion_entry(),
              manual_entry(),
              help_entry(),
          },
      .version = CARNOT_VERSION,
      .print_recipe_keys = print_recipe_keys,
  };
  return table;
}

}  // namespace carnot
