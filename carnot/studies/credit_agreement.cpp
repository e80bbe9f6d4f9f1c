#include "carnot/studies/credit_agreement.h"

#include <cmath>

#include "carnot/studies/correlation.h"

namespace carnot {
CreditAgreement agreement_of(const ComparedCredit& pairs, const Reliability& reliability, std::uint64_t seed) {
  const Correlation measured = resampled_pearson(pairs.credit, pairs.advantage, pairs.task, seed);
  CreditAgreement out{.pairs = std::ssize(pairs.credit),
                      .pearson = measured.value,
                      .interval = measured.interval,
                      .corrected = disattenuated(measured.value, reliability),
                      .spearman = spearman(pairs.credit, pairs.advantage)};
  for (std::size_t i = 0; i < pairs.credit.size(); ++i) {
    if (!(std::abs(pairs.advantage[i]) > 2 * pairs.error[i])) continue;
    ++out.clear;
    out.right += pairs.credit[i] * pairs.advantage[i] > 0 ? 1 : 0;
  }
  return out;
}

}  // namespace carnot
