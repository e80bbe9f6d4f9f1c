// Any bytes are a row, a game file or a problem of ALFWorld, or a message that says where; what is one can be played.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"
#include "carnot/worlds/alfworld/game_files.h"
#include "carnot/worlds/alfworld/simulator.h"
#include "carnot/worlds/alfworld/solver.h"
#include "tests/fuzz/target.h"

namespace {

void play(const carnot::Room& room, std::uint64_t seed) {
  carnot::RandomStream random(seed);
  carnot::RoomState state = room.start;
  std::vector<carnot::RoomCommand> commands;
  for (int step = 0; step < 20; ++step) {
    list_admissible(room, state, commands);
    const carnot::RoomCommand command = random.pick(commands);
    CARNOT_CHECK(admits(room, state, command), command_text(room, command));
    apply_command(room, state, command);
    CARNOT_CHECK(!feedback(room, state, command).empty(), command_text(room, command));
  }
  if (room.objects.size() + room.receptacles.size() > 60) return;  // the solver takes its time in large rooms
  const auto plan = solve_alfworld(room, state);
  if (!plan) return;
  for (const carnot::PlannedCommand& planned : *plan) {
    CARNOT_CHECK(admits(room, state, planned.command), command_text(room, planned.command));
    apply_command(room, state, planned.command);
  }
  CARNOT_CHECK(is_goal(room, state), "a plan wins");
}

}  // namespace

CARNOT_FUZZ_TARGET(alfworld_game) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto check = [](const auto& result) {
    if (!result.ok()) CARNOT_CHECK(result.error().message.starts_with("/nowhere/game:"), result.error().message);
    return result.ok();
  };
  const auto row = carnot::parse_alfworld_row(text, "/nowhere/game");
  if (check(row)) play(row->room, size);
  const auto game = carnot::parse_alfworld_game(text, "/nowhere/game");
  if (check(game)) play(game->task.room, size);
  const auto room = carnot::parse_room(text, "/nowhere/game");
  if (check(room)) play(*room, size);
  return 0;
}
