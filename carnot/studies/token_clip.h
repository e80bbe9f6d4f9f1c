// studies/token_clip.h -- what the objective's clip does to tokens, as plain numbers.
#pragma once

#include <span>
#include <vector>

#include "carnot/core/objective/options.h"

namespace carnot {

/// A token, or a turn with its own ratio.
struct ClipInput {
  double log_ratio = 0;  ///< current - old log-probability (of a turn: their mean)
  double advantage = 0;
  double clip_scale = 1;
};

struct TokenClip {
  double slope = 0;  ///< factor of A times the gradient of the log-probability (loss/clip.h)
  bool clipped = false;
  bool dual_clipped = false;
};

/// As loss/clip.h has it, which does the work.
std::vector<TokenClip> token_clips(std::span<const ClipInput> inputs, const ObjectiveOptions& options);

}  // namespace carnot
