// signal/signal.h -- which measurements a method asks for; the scorer (rollout) fills them by forward passes.
#pragma once

#include <cstdint>
#include <string_view>

#include "carnot/base/fields.h"

namespace carnot {

enum class Signal : std::uint8_t {
  LogProbOld,   ///< with EntropyOld: one pass yields both
  Reference,    ///< log-probability, entropy and energy of the frozen reference
  Value,        ///< the critic's values
  InfoGain,     ///< the answer scored at every turn boundary
  TurnEntropy,  ///< entropy of the first sampled tokens of each turn, by the engine
};
inline constexpr std::string_view kSignalNames[] = {"log_prob_old", "reference", "value", "info_gain", "turn_entropy"};
inline std::string_view name_of(Signal signal) { return kSignalNames[static_cast<std::size_t>(signal)]; }

/// How the gain of a turn is measured: what scoring the answer behind it says, minus what it said before.
enum class GainMeasure {
  Probability,     ///< exp(mean log-probability of the answer's tokens)
  LogProbability,  ///< their mean log-probability
};

struct InfoGainOptions {
  GainMeasure measure = GainMeasure::Probability;
  bool query_baseline = true;  ///< the first turn's gain is over the prompt alone; false: the first turn has none

  void fields(FieldVisitor& visit);
};

}  // namespace carnot
