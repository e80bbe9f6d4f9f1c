#include "carnot/core/credit/entropy_scale.h"

#include "carnot/core/base/statistics.h"

namespace carnot {

std::vector<double> entropy_scale(std::span<const double> entropies, double strength) {
  std::vector<double> factors(entropies.size(), 1.0);
  if (strength == 0 || all_equal(entropies)) return factors;
  const double centre = mean(entropies);
  const double deviation = std_sample(entropies);
  const double divisor = deviation > 0 ? deviation : 1;
  for (std::size_t t = 0; t < factors.size(); ++t) factors[t] = 1 + strength * ((entropies[t] - centre) / divisor);
  return factors;
}

}  // namespace carnot
