#include "carnot/core/credit/normalise.h"

#include <algorithm>
#include <cmath>

#include "carnot/core/base/statistics.h"
#include "carnot/core/credit/rule.h"

namespace carnot {
namespace {

double squares_around(std::span<const double> values, double centre) {
  double sum = 0;
  for (double x : values) sum += (x - centre) * (x - centre);
  return sum;
}

double divisor_of(std::span<const double> values, double centre, const Normalisation& options) {
  if (!options.divide_by_std) return 1;
  const double n = static_cast<double>(values.size());
  const double variance = squares_around(values, centre) / (options.deviation == Deviation::Sample ? n - 1 : n);
  return std::sqrt(std::max(variance + options.variance_epsilon, options.variance_floor)) + options.epsilon;
}

Standard standard_of_one(double value, const Normalisation& options) {
  return {.centre = options.singleton == Singleton::Zero ? value : 0,
          .divisor = options.divide_by_std ? 1 + options.epsilon : 1};
}

}  // namespace

void Normalisation::fields(FieldVisitor& visit) {
  visit.field("divide_by_std", divide_by_std, "divide by the group's standard deviation");
  enum_field(visit, "deviation", deviation, {"sample", "population"}, "which standard deviation: n - 1 or n");
  visit.field("epsilon", epsilon, "added to the standard deviation", at_least(0));
  visit.field("variance_epsilon", variance_epsilon, "added to the variance", at_least(0));
  visit.field("variance_floor", variance_floor, "the variance is at least this", at_least(0));
  singleton_field(visit, singleton);
}

UnreadKeys Normalisation::unread_keys() const {
  UnreadKeys unread;
  if (!divide_by_std)
    unread.add({"deviation", "epsilon", "variance_epsilon", "variance_floor"}, "divide_by_std is false");
  return unread;
}

void singleton_field(FieldVisitor& visit, Singleton& singleton) {
  enum_field(visit, "singleton", singleton, {"zero", "raw"}, "what a group of one gets: 0, or its own value");
}

void Whitening::fields(FieldVisitor& visit) {
  visit.field("epsilon", epsilon, "added to the variance", at_least(0));
  visit.field("count_epsilon", count_epsilon, "added to the number of tokens that means divide by (verl: 1e-8)",
              at_least(0));
}

Normalisation population_normalisation() {
  return {.deviation = Deviation::Population, .epsilon = 1e-6, .variance_epsilon = 1e-8};
}

Standard standard_of(std::span<const double> values, const Normalisation& options) {
  if (values.empty()) return {};
  if (values.size() == 1) return standard_of_one(values.front(), options);
  const double centre = all_equal(values) ? values.front() : mean(values);
  const double divisor = divisor_of(values, centre, options);
  return {.centre = centre, .divisor = divisor > 0 ? divisor : 1};
}

std::vector<double> normalised(std::span<const double> values, const Normalisation& options) {
  const Standard standard = standard_of(values, options);
  std::vector<double> out;
  for (double x : values) out.push_back(standard.of(x));
  return out;
}

std::vector<double> whitened(std::span<const double> values, const Whitening& options) {
  const bool no_spread = values.size() < 2 || (options.count_epsilon == 0 && all_equal(values));
  if (no_spread) return std::vector<double>(values.size(), 0.0);
  const double n = static_cast<double>(values.size());
  const double divisor = n + options.count_epsilon;
  double sum = 0;
  for (double x : values) sum += x;
  const double centre = sum / divisor;
  const double variance = squares_around(values, centre) / divisor * n / (n - 1);
  std::vector<double> out;
  for (double x : values) out.push_back((x - centre) / std::sqrt(variance + options.epsilon));
  return out;
}

void whiten_sampled(std::span<const Trajectory> trajectories, std::vector<std::vector<double>>& values,
                    const Whitening& options) {
  std::vector<double> all;
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    if (!trajectories[i].leaf().is_included()) continue;
    for (int k = 0; k < trajectories[i].num_turns(); ++k)
      for (double x : sampled_part(values[i], trajectories[i], k)) all.push_back(x);
  }
  const std::vector<double> white = whitened(all, options);
  std::size_t next = 0;
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    if (!trajectories[i].leaf().is_included()) continue;
    for (int k = 0; k < trajectories[i].num_turns(); ++k)
      for (double& x : sampled_part(values[i], trajectories[i], k)) x = white[next++];
  }
}

}  // namespace carnot
