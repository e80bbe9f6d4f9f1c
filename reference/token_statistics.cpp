#include "reference/token_statistics.h"

#include <algorithm>
#include <cmath>

#include "reference/clamped_entropy.h"

namespace carnot::reference {
namespace {

std::vector<double> scaled(std::span<const double> logits, double temperature) {
  std::vector<double> z(logits.begin(), logits.end());
  for (double& x : z) x /= temperature;
  return z;
}

double logsumexp(const std::vector<double>& z) {
  const double maximum = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (const double x : z) sum += std::exp(x - maximum);
  return maximum + std::log(sum);
}

}  // namespace

RowStatistics row_statistics(std::span<const double> logits, double temperature, std::size_t target,
                             std::size_t removed) {
  const std::vector<double> z = scaled(logits, temperature);
  const double all = logsumexp(z);
  RowStatistics out{.logprob = z[target] - all, .logsumexp = all};
  for (const double x : z)
    if (std::exp(x - all) > 0) out.entropy -= std::exp(x - all) * (x - all);
  if (removed > 0) out.clamped_entropy = clamped_entropy(z, removed).entropy;
  return out;
}

std::vector<double> row_statistics_gradient(std::span<const double> logits, double temperature, std::size_t target,
                                            std::size_t removed, const RowStatistics& factors) {
  const std::vector<double> z = scaled(logits, temperature);
  const RowStatistics own = row_statistics(logits, temperature, target, removed);
  std::vector<double> gradient(z.size());
  for (std::size_t v = 0; v < z.size(); ++v) {
    const double log_p = z[v] - own.logsumexp, p = std::exp(log_p);
    gradient[v] = factors.logprob * ((v == target ? 1 : 0) - p) + factors.logsumexp * p;
    if (p > 0) gradient[v] -= factors.entropy * p * (log_p + own.entropy);
  }
  if (removed > 0) {
    const ClampedEntropy clamped = clamped_entropy(z, removed);
    for (std::size_t v = 0; v < z.size(); ++v) gradient[v] += factors.clamped_entropy * clamped.by_logit[v];
  }
  for (double& x : gradient) x /= temperature;
  return gradient;
}

}  // namespace carnot::reference
