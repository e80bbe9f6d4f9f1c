// cli/play_environment.h -- `carnot env NAME`: an environment with options from the command line, played by hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "carnot/cli/console.h"

namespace carnot {

struct PlayRequest {
  std::string name{};
  std::uint64_t seed = 0;      ///< of the instance
  std::uint64_t run_seed = 0;  ///< the recipe's `seed`: of what all instances share
  bool json = false;
  bool prompt = false;
  std::vector<std::string> overrides{};  ///< `key=value`: a recipe's `env.` keys without that prefix
};

/// Plays until the instance is done or the console's input ends.
Status play_environment(const PlayRequest& request, const Console& console);

}  // namespace carnot
