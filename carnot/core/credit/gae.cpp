#include "carnot/core/credit/gae.h"

#include <cmath>

#include "carnot/core/credit/critic_advantage.h"

namespace carnot {
namespace {

std::vector<double> advantages(const Trajectory& trajectory, std::span<const double> reward,
                               std::span<const double> value, const GaeOptions& options) {
  const std::vector<bool> sampled = trajectory.sampled();
  std::vector<double> advantage(value.size(), 0.0);
  AdvantageRecursion recursion(options.gamma, options.lambda);
  for (std::size_t t = value.size(); t-- > 0;) {
    if (options.skip_unsampled && !sampled[t]) continue;
    advantage[t] = recursion.step(reward[t], std::isnan(value[t]) && !sampled[t] ? 0 : value[t]);
  }
  return advantage;
}

}  // namespace

void GaeOptions::fields(FieldVisitor& visit) {
  visit.field("gamma", gamma, "discount per sampled token", between(0, 1));
  visit.field("lambda", lambda, "0: one-step differences, 1: whole returns", between(0, 1));
  visit.field("whiten", whiten, "normalise advantages over all sampled tokens of the step");
  section(visit, "whitening", whitening, "how they are normalised");
}

UnreadKeys GaeOptions::unread_keys() const {
  UnreadKeys unread;
  if (!whiten) unread.add_all(whitening, "whitening", "whiten is false");
  return unread;
}

CreditRule gae(const GaeOptions& options) {
  const auto of_trajectory = [options](const Trajectory& trajectory, std::span<const double> reward,
                                       std::span<const double> value) {
    return advantages(trajectory, reward, value, options);
  };
  return critic_rule("gae", of_trajectory, options.whiten ? std::optional(options.whitening) : std::nullopt);
}

}  // namespace carnot
