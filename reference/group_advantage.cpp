#include "reference/group_advantage.h"

#include <cmath>

namespace carnot::reference {
namespace {

bool has_signal(const std::vector<double>& values) {
  for (double x : values)
    if (x != values[0]) return true;
  return false;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (double x : values) sum += x;
  return sum / static_cast<double>(values.size());
}

double variance_of(const std::vector<double>& values) {
  double sum = 0;
  for (double x : values) sum += std::pow(x - mean_of(values), 2);
  return sum / (static_cast<double>(values.size()) - 1);
}

}  // namespace

double group_relative(const std::vector<double>& rewards, std::size_t i, bool divide_by_std) {
  if (!has_signal(rewards)) return 0;
  const double deviation = rewards[i] - mean_of(rewards);
  return divide_by_std ? deviation / (std::sqrt(variance_of(rewards)) + 1e-6) : deviation;
}

double leave_one_out(const std::vector<double>& rewards, std::size_t i) {
  if (rewards.size() == 1) return 0;
  double others = 0;
  for (std::size_t j = 0; j < rewards.size(); ++j)
    if (j != i) others += rewards[j];
  return rewards[i] - others / static_cast<double>(rewards.size() - 1);
}

double gae(const std::vector<double>& rewards, const std::vector<double>& values, std::size_t t, double gamma,
           double lambda) {
  double sum = 0;
  for (std::size_t k = t; k < rewards.size(); ++k) {
    const double next = k + 1 < rewards.size() ? values[k + 1] : 0;
    sum += std::pow(gamma * lambda, static_cast<double>(k - t)) * (rewards[k] + gamma * next - values[k]);
  }
  return sum;
}

double whitened(const std::vector<double>& values, std::size_t i) {
  if (!has_signal(values)) return 0;
  return (values[i] - mean_of(values)) / std::sqrt(variance_of(values) + 1e-8);
}

}  // namespace carnot::reference
