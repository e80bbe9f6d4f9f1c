// signal/signal.h -- which measurements a method asks for; the scorer (rollout) fills them by forward passes.
#pragma once

#include <cstdint>
#include <string_view>

namespace carnot {

enum class Signal : std::uint8_t {
  LogProbOld,     ///< with EntropyOld: one pass yields both
  Reference,      ///< log-probability, entropy and energy of the frozen reference
  Value,          ///< the critic's values
  InfoGain,       ///< the answer scored at every turn boundary
  TurnEntropy,    ///< entropy of the first sampled tokens of each turn, by the engine
};
inline constexpr std::string_view kSignalNames[] = {"log_prob_old", "reference", "value", "info_gain", "turn_entropy"};
inline std::string_view name_of(Signal signal) { return kSignalNames[static_cast<std::size_t>(signal)]; }

}  // namespace carnot
