// cli/commands.h -- one function per command that needs no model: request in, text out, exit status back.
#pragma once

#include "carnot/cli/command_line.h"
#include "carnot/cli/console.h"

namespace carnot {

Exit execute(const HelpRequest& request, const Console& console);
Exit execute(const VersionRequest& request, const Console& console);
Exit execute(const InspectRequest& request, const Console& console);
Exit execute(const CreditRequest& request, const Console& console);
Exit execute(const ListRequest& request, const Console& console);
Exit execute(const PlayRequest& request, const Console& console);
Exit execute(const TokenizeRequest& request, const Console& console);
Exit execute(const ManualRequest& request, const Console& console);

}  // namespace carnot
