#include "carnot/core/alarm/example.h"

#include <optional>

#include "carnot/core/base/excerpt.h"
#include "carnot/core/base/printable.h"
#include "carnot/core/data/tool_call.h"

namespace carnot {
namespace {

constexpr std::size_t kShownBytes = 300;

/// The turn that shows it.
std::optional<int> turn_of(ExampleOf what, const Trajectory& trajectory) {
  const int last = trajectory.num_turns() - 1;
  if (!trajectory.leaf().valid() || last < 0) return std::nullopt;
  if (what == ExampleOf::AnyTrajectory) return last;
  if (what == ExampleOf::TruncatedTrajectory)
    return trajectory.leaf().outcome == Outcome::OutOfTokens ? std::optional(last) : std::nullopt;
  for (int k = 0; k <= last; ++k) {
    const Turn& turn = trajectory.turn(k);
    if (what == ExampleOf::InvalidTurn ? !turn.valid_action : is_failed_call(turn)) return k;
  }
  const auto format = trajectory.leaf().measures.find("format");
  const bool lacks_format = format != trajectory.leaf().measures.end() && format->second == 0;
  return what == ExampleOf::InvalidTurn && lacks_format ? std::optional(last) : std::nullopt;
}

std::string shown(const Trajectory& trajectory, int k, const Decode& decode) {
  const Turn& turn = trajectory.turn(k);
  const std::span<const TokenId> tokens(turn.tokens);
  std::string text = "score " + in_words(trajectory.leaf().score) + ", ";
  if (trajectory.num_turns() > 1)
    text += "turn " + std::to_string(k + 1) + " of " + std::to_string(trajectory.num_turns()) + ", ";
  if (!turn.tool.empty()) text += "tool " + printable_line(turn.tool) + " (" + printable_line(turn.status) + "), ";
  return text + "response: " +
         printable_line(end_of(decode(tokens.subspan(turn.sampled_begin, turn.num_sampled())), kShownBytes));
}

}  // namespace

std::string example(ExampleOf what, std::span<const Trajectory> trajectories, const Decode& decode) {
  if (what == ExampleOf::None) return "";
  for (const Trajectory& trajectory : trajectories)
    if (const auto turn = turn_of(what, trajectory)) return shown(trajectory, *turn, decode);
  return "";
}

}  // namespace carnot
