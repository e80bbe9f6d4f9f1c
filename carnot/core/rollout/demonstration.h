// rollout/demonstration.h -- a scripted agent's episode as a tree, for SFT.
#pragma once

#include <cstdint>

#include "carnot/core/base/result.h"
#include "carnot/core/rollout/episode.h"

namespace carnot {

struct DemonstrationOptions {
  std::int64_t index = 0;  ///< of the task, before the factory's curriculum moves it
  double progress = 1;     ///< of SFT, in [0, 1]
  std::uint64_t seed = 0;  ///< of the script's draws
  EpisodeOptions episode{};
};

/// Plays the script. The tokens it would have sampled are where a policy's are: the text of each response after the
/// assistant's prefix, and the token that ends the message, except where a stop string of the protocol ended it first.
/// An environment without a script is an error; so is a script that leaves out the prefix.
Result<Tree> demonstrate(const EnvironmentFactory& factory, const ChatFamily& chat,
                         const DemonstrationOptions& options);

}  // namespace carnot
