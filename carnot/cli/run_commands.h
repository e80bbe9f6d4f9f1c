// cli/run_commands.h -- the commands that read a recipe or run a model.
#pragma once

#include "carnot/cli/command_line.h"
#include "carnot/cli/console.h"

namespace carnot {

/// The first SIGINT or SIGTERM asks the run to write a checkpoint and leave, the second leaves at once.
Exit execute(const RunRequest& request, const Console& console);
Exit execute(const CompareRequest& request, const Console& console);
Exit execute(const EvaluateRequest& request, const Console& console);

/// The first signal ends the command behind what is written, the second leaves at once.
Exit execute(const GenerateRequest& request, const Console& console);
Exit execute(const ScoreRequest& request, const Console& console);

/// A table of findings; numbers and page go to the output folder.
Exit execute(const AnalyzeRequest& request, const Console& console);
Exit execute(const AnalysesRequest& request, const Console& console);

/// What the gradient leaves out is said on standard error.
Exit execute(const ExplainRequest& request, const Console& console);
Exit execute(const ExportRequest& request, const Console& console);

/// Knows the keys of the default recipe.
Exit execute(const CompletionRequest& request, const Console& console);

Exit execute(const KeysRequest& request, const Console& console);
Exit execute(const RunHelpRequest& request, const Console& console);

}  // namespace carnot
