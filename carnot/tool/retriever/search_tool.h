// tool/retriever/search_tool.h -- the built-in tool `search` over an index file or a server of Search-R1's API.
#pragma once

#include <memory>
#include <string>

#include "carnot/tool/tool.h"

namespace carnot {

/// Whether `where` names what make_retriever_search() opens: http://, https://, or a name in .bm25.
bool is_retriever(const std::string& where);

/// The tool `search`; a call throws PeerFailure where the retriever is away or damaged.
Result<std::shared_ptr<Tool>> make_retriever_search(const std::string& where);

}  // namespace carnot
