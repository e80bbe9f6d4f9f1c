// worlds/open_qa/arpo.h -- ARPO's words where search is the only tool, which A2TGPO shares (Dong et al. 2025,
// arXiv:2507.19849). The tags and their format: worlds/search_qa/protocol.h.
#pragma once

#include <string>
#include <string_view>

#include "carnot/retrieval/retriever/retriever.h"

namespace carnot {

/// The system prompt of ARPO's variant `search`.
std::string_view arpo_search_prompt();

/// "Doc 1 (Title: "X")\ntext\n\n" and so on, as verl's search tool writes them; without any, that the tool returned
/// nothing.
std::string arpo_passages(const RetrievedPassages& passages);

}  // namespace carnot
