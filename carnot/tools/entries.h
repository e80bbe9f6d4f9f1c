// tools/entries.h -- a line for each kind of tool: the function that makes it. tools.cpp lists them.
#pragma once

#include <memory>

#include "carnot/tools/toolbox/toolbox.h"

namespace carnot {

std::unique_ptr<ToolKind> make_calculator_kind();
std::unique_ptr<ToolKind> make_code_kind();
std::unique_ptr<ToolKind> make_mcp_kind();
std::unique_ptr<ToolKind> make_passage_search_kind();
std::unique_ptr<ToolKind> make_python_kind();
std::unique_ptr<ToolKind> make_retriever_search_kind();
std::unique_ptr<ToolKind> make_web_kind();

}  // namespace carnot
