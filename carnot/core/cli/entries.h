// cli/entries.h -- a line for each command that does without LibTorch: the function that makes its entry.
#pragma once

#include <vector>

#include "carnot/core/cli/command.h"
#include "carnot/core/cli/credit.h"
#include "carnot/core/cli/list.h"

namespace carnot {

CommandEntry credit_entry(const CreditExplainer& explainer);
CommandEntry environment_entry();
CommandEntry inspect_entry();
/// With `further` topics after the room's own.
CommandEntry list_entry(const std::vector<ListTopic>& further);
CommandEntry tokenize_entry();

}  // namespace carnot
