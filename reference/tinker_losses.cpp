#include "reference/tinker_losses.h"

#include <cmath>

#include "carnot/core/base/check.h"

namespace carnot::reference {

TinkerTokenLoss tinker_loss(const std::string& name, const TinkerToken& token) {
  const double p = token.log_prob, a = token.advantage, difference = p - token.sampled;
  const double ratio = std::exp(difference);
  const double bounded = ratio < token.low ? token.low : ratio > token.high ? token.high : ratio;
  if (name == "cross_entropy") return {-token.weight * p, -token.weight};
  if (name == "importance_sampling") return {-ratio * a, -ratio * a};
  if (name == "ppo") {
    const bool is_clipped = (a > 0 && ratio > token.high) || (a < 0 && ratio < token.low);
    return {is_clipped ? -bounded * a : -ratio * a, is_clipped ? 0 : -ratio * a};
  }
  if (name == "cispo") return {-bounded * a * p, -bounded * a};
  CARNOT_CHECK(name == "dro", name);
  return {-(a * p - token.beta / 2 * difference * difference), -(a - token.beta * difference)};
}

}  // namespace carnot::reference
