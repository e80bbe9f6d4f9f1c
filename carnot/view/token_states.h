// view/token_states.h -- what an optimizer step did to each token of a trajectory: its ratio, and whether it was
// clipped.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace carnot {

/// By token of a trajectory; both empty if nothing is known.
struct TokenStates {
  std::vector<double> ratio{};            ///< NaN where the step did not train the token
  std::vector<std::string> clip_state{};  ///< none, low, high, dual, limit; empty if it did not
};

/// The lists `ratio` and `clip_state` that `carnot credit --explain` wrote into a row of this many tokens; without them
/// nothing. REQUIRES: `row` is a line that was read as a rollout.
TokenStates states_in_row(std::string_view row, std::size_t tokens);

}  // namespace carnot
