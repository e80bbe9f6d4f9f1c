// credit/normalise.h -- z-scores and whitening, with every choice that published code makes silently made by name.
#pragma once

#include <span>
#include <vector>

#include "carnot/base/unread_keys.h"
#include "carnot/data/credit_table.h"

namespace carnot {

enum class Deviation { Sample, Population };  ///< divide the squares by n - 1 or by n
/// What a group of one gets: nothing, or its own value (mean taken as 0, deviation as 1).
enum class Singleton { Zero, Raw };

/// (x - mean) / (deviation + epsilon). Values that are all equal give exactly 0, whatever the rounding of their mean.
struct Normalisation {
  bool divide_by_std = true;  ///< false: x - mean
  Deviation deviation = Deviation::Sample;
  double epsilon = 1e-6;        ///< added to the deviation
  double variance_epsilon = 0;  ///< added to the variance
  double variance_floor = 0;    ///< the variance is at least this (verl's vectorised GRPO: 1e-6)
  Singleton singleton = Singleton::Zero;

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const;
};

/// Visits `singleton`.
void singleton_field(FieldVisitor& visit, Singleton& singleton);

/// sqrt(var + 1e-8) + 1e-6 with the population's variance: IGPO, A2TGPO.
Normalisation population_normalisation();

/// What z-scores are taken against.
struct Standard {
  double centre = 0;
  double divisor = 1;

  double of(double value) const { return (value - centre) / divisor; }
};
/// Nothing: {0, 1}.
Standard standard_of(std::span<const double> values, const Normalisation& options);

/// Every value against the standard of all of them.
std::vector<double> normalised(std::span<const double> values, const Normalisation& options);

/// (x - mean) / sqrt(var + epsilon), var with n - 1. The published form divides by n + count_epsilon.
struct Whitening {
  double epsilon = 1e-8;
  double count_epsilon = 0;  ///< verl: 1e-8

  void fields(FieldVisitor& visit);
};

/// Fewer than two values: 0. All equal: exactly 0, unless count_epsilon asks for the published rounding.
std::vector<double> whitened(std::span<const double> values, const Whitening& options);

/// Whitens `values` over the sampled tokens of all included trajectories, in place. One vector per trajectory,
/// one value per token; tokens that were not sampled keep theirs.
void whiten_sampled(std::span<const Trajectory> trajectories, std::vector<std::vector<double>>& values,
                    const Whitening& options);

}  // namespace carnot
