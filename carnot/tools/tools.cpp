#include "carnot/tools/tools.h"

#include "carnot/built.h"
#include "carnot/tools/entries.h"

namespace carnot {

void offer_tools() {
  static const std::vector<ToolKindEntry> table = {
      {{"calculator"}, "calculator", "arithmetic", CARNOT_BUILT(calculator, make_calculator_kind)},
      {{"python", "code_interpreter"},
       "python, code_interpreter",
       "Python code of the policy's, in a sandbox",
       CARNOT_BUILT(code, make_code_kind)},
      {{"search web", "browse"},
       "search web, browse",
       "an API that searches the web, or a file of its answers; the text of a web page",
       CARNOT_BUILT(web, make_web_kind)},
      {{"search http://*", "search https://*", "search *.bm25"},
       "search URL, search FILE.bm25",
       "a server of Search-R1's API, or an index file",
       CARNOT_BUILT(retriever_search, make_retriever_search_kind)},
      {{"search *"}, "search FILE", "BM25 over the passages of a file", CARNOT_BUILT(search, make_passage_search_kind)},
      {{"mcp *", "*.json"},
       "mcp COMMAND, mcp URL, FILE.json",
       "MCP servers: started, running, or in a file as other clients list them",
       CARNOT_BUILT(mcp, make_mcp_kind)},
      {{"*:*"}, "FILE.py:FUNCTION", "a Python function", CARNOT_BUILT(python_tools, make_python_kind)},
  };
  offer_tool_kinds(table);
}

}  // namespace carnot
