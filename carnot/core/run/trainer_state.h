// run/trainer_state.h -- trainer_state.json: what a checkpoint holds apart from weights and optimizer moments.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

/// Steps that an optimizer took, and those that it left out for gradients that were not finite.
struct UpdateCounts {
  std::int64_t updates = 0;
  std::int64_t skipped = 0;

  bool operator==(const UpdateCounts&) const = default;
};

struct TrainerState {
  std::int64_t step = 0;  ///< steps that are complete
  std::int64_t seed = 0;
  std::int64_t sampled_tokens = 0;  ///< by these steps; files of earlier versions do not count them
  std::string kernels{};            ///< own_kernels() of who wrote it; empty: unknown, as in files of earlier versions
  std::optional<UpdateCounts> optimizer{};
  std::optional<UpdateCounts> critic_optimizer{};
  std::map<std::string, double> coefficients{};       ///< that change from step to step (adaptive KL, entropy bonus)
  std::map<std::string, double> alarms{};             ///< what AlarmWatch keeps (alarm/watch.h)
  std::map<std::string, double> unwritten_metrics{};  ///< of the step, where its evaluation is still to be made

  bool operator==(const TrainerState&) const = default;
};

/// The content of the file.
std::string trainer_state_json(const TrainerState& state);

/// Reads it back; `where` precedes each problem. Counts are at least 0, coefficients numbers.
Result<TrainerState> parse_trainer_state(std::string_view text, const std::string& where);

}  // namespace carnot
