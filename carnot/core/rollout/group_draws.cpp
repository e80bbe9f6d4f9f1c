#include "carnot/core/rollout/group_draws.h"

namespace carnot {

DrawKey GroupDraws::key(std::string_view purpose, int sibling, int turn, int position) const {
  return {.seed = purpose.empty() ? key_.seed : derive_seed(key_.seed, purpose),
          .step = static_cast<std::uint64_t>(key_.step),
          .group = key_.first_group + static_cast<std::uint64_t>(group_),
          .sibling = static_cast<std::uint64_t>(sibling),
          .turn = static_cast<std::uint64_t>(turn),
          .position = static_cast<std::uint64_t>(position)};
}

}  // namespace carnot
