// worlds/search_qa/game.h -- the search task as a bare game, without a protocol of messages.
#pragma once

#include <memory>

#include "carnot/core/env/game.h"
#include "carnot/worlds/search_qa/environment.h"

namespace carnot {

/// The bare game: `search QUERY` and `answer TEXT` on their own line.
std::unique_ptr<Game> make_search_game(SearchTask task, const SearchQaOptions& options);

}  // namespace carnot
