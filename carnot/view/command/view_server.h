// view/command/view_server.h -- the page of a run while it trains, over HTTP on this machine alone.
//
//   GET /          the page
//   GET /progress  {"steps": that have rollouts, "notes": alarms, "curves", "finished"}
//   POST /data     {"steps": [1, 5], "methods": "grpo + aem"}: the page's data (view/page.h) of these steps with the
//                  credit of these methods; without methods, of the rows. 400 {"error": what is wrong}
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

struct FollowOptions {
  std::filesystem::path path{};       ///< a run folder, perhaps without rollouts yet, or a file of rollouts
  std::filesystem::path tokenizer{};  ///< empty: the run's
  std::string methods{};              ///< of the page as it opens
  std::size_t steps = 5;              ///< on the page as it opens
  std::size_t bytes = 0;              ///< of an answer
  int port = 0;                       ///< 0: any that is free
};

/// Listens on 127.0.0.1, writes the address and serves until `stop` is true. The error says why it cannot.
Status follow_run(const FollowOptions& options, std::ostream& out, const std::function<bool()>& stop);

}  // namespace carnot
