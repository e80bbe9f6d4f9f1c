// credit/normalise.h -- z-scores and whitening, with explicit options for every choice that published code makes
// silently.
#pragma once

#include <span>
#include <vector>

#include "carnot/core/base/unread_keys.h"
#include "carnot/core/data/credit_table.h"

namespace carnot {

enum class Deviation { Sample, Population };  ///< divide the squares by n - 1 or by n
/// What a group of one gets: 0, or its own value (mean taken as 0, deviation as 1).
enum class Singleton { Zero, Raw };

/// (x - mean) / (deviation + epsilon). Values that are all equal give exactly 0, however their mean is rounded.
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

/// The mean and deviation of a z-score.
struct Standard {
  double centre = 0;
  double divisor = 1;

  double of(double value) const { return (value - centre) / divisor; }
};
/// {0, 1} if `values` is empty.
Standard standard_of(std::span<const double> values, const Normalisation& options);

/// The z-scores of the values among themselves.
std::vector<double> normalised(std::span<const double> values, const Normalisation& options);

/// (x - mean) / sqrt(var + epsilon), var with n - 1. The published form divides by n + count_epsilon.
struct Whitening {
  double epsilon = 1e-8;
  double count_epsilon = 0;  ///< verl: 1e-8

  void fields(FieldVisitor& visit);
};

/// 0 for fewer than two values. Exactly 0 if all are equal, unless count_epsilon asks for the published rounding.
std::vector<double> whitened(std::span<const double> values, const Whitening& options);

/// Whitens `values` over the sampled tokens of all included trajectories, in place. One vector per trajectory, one
/// value per token; values of tokens that were not sampled are unchanged.
void whiten_sampled(std::span<const Trajectory> trajectories, std::vector<std::vector<double>>& values,
                    const Whitening& options);

}  // namespace carnot
