// env/replay.h -- an episode played again from its responses, for environments that cannot be copied.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "carnot/core/env/environment.h"

namespace carnot {

/// A response and what it was answered.
struct PlayedTurn {
  PolicyResponse response{};
  std::uint64_t reply_key = 0;  ///< key_of() the reply
};

/// Equal for replies that a policy and the training cannot tell apart.
std::uint64_t key_of(const Reply& reply);

/// A new environment of the task after the same turns. Throws EnvironmentFailure where it answers otherwise than the
/// first one did: such an environment must refuse branching.
std::unique_ptr<Environment> replay(const std::function<std::unique_ptr<Environment>()>& make,
                                    std::span<const PlayedTurn> turns);

}  // namespace carnot
