// data/measurement.h -- what separate passes measure on finished trajectories, in addition to what sampling records.
//
// Credit rules and the objective name the columns that they read; the necessary measurements follow from these
// (method/method.h). rollout/measure.h and rollout/info_gain.h perform them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "carnot/core/base/fields.h"
#include "carnot/core/data/columns.h"

namespace carnot {

enum class Measurement : std::uint8_t {
  OldPolicy,  ///< LogProbOld and EntropyOld
  Reference,  ///< LogProbReference, EnergyReference and EntropyReference
  Values,     ///< Value
  InfoGain,   ///< Turn::info_gain: of the ground truth, at every turn boundary
  Oracle,     ///< AdvantageOracle
};
inline constexpr std::string_view kMeasurementNames[] = {"old_policy", "reference", "values", "info_gain", "oracle"};
inline std::string_view name_of(Measurement measurement) {
  return kMeasurementNames[static_cast<std::size_t>(measurement)];
}

/// The measurement that fills the column; empty if sampling, the update or the environment does.
std::optional<Measurement> measurement_of(Column column);

/// How the gain of a turn is measured: the answer's likelihood after the turn, minus its likelihood before.
enum class GainMeasure {
  Probability,     ///< exp(mean log-probability of the answer's tokens)
  LogProbability,  ///< their mean log-probability
};

struct InfoGainOptions {
  GainMeasure measure = GainMeasure::Probability;
  bool query_baseline = true;  ///< the first turn's gain is relative to the prompt alone; false: it has none

  void fields(FieldVisitor& visit);
};

}  // namespace carnot
