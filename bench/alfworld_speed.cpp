// Steps per second of the environment `alfworld`, on one core.
//
//   alfworld_bench FOLDER [SPLIT]
//
// Reads the games of SPLIT (valid_seen), plays 50 random admissible commands in each, and then times the same commands:
// as values, as strings with their answers, with the list of admissible actions after each, and as responses to
// verl-agent's prompts. Prints steps per second of processor time, the median of seven rounds.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/worlds/alfworld/environment.h"
#include "carnot/worlds/alfworld/game.h"

namespace carnot {
namespace {

constexpr int kSteps = 50, kRounds = 7;

/// A game and commands that can be carried out in it one after the other, none of which wins.
struct RecordedPlay {
  std::shared_ptr<const AlfworldTask> task{};
  std::vector<RoomCommand> commands{};
  std::vector<std::string> texts{};
  std::vector<std::string> responses{};
};

RecordedPlay record_play(AlfworldTask game, std::uint64_t seed) {
  RecordedPlay play{.task = std::make_shared<const AlfworldTask>(std::move(game))};
  const Room& room = play.task->room;
  RandomStream random(seed);
  RoomState state = room.start;
  std::vector<RoomCommand> admissible;
  while (play.commands.size() < kSteps) {
    list_admissible(room, state, admissible);
    RoomState next = state;
    const RoomCommand command = random.pick(admissible);
    apply_command(room, next, command);
    if (is_goal(room, next)) continue;
    state = std::move(next);
    play.commands.push_back(command);
    play.texts.push_back(command_text(room, command));
    play.responses.push_back("<think>so</think><action>" + play.texts.back() + "</action>");
  }
  return play;
}

/// Processor time, which other processes affect less than the clock.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// What the loops computed; printed, so that the compiler removes none of it.
std::size_t checksum = 0;

void play_values(const RecordedPlay& play) {
  const Room& room = play.task->room;
  RoomState state = room.start;
  for (const RoomCommand& command : play.commands) {
    if (!admits(room, state, command)) continue;
    apply_command(room, state, command);
    checksum += is_goal(room, state) ? 1 : 0;
  }
}

void play_values_and_lists(const RecordedPlay& play) {
  const Room& room = play.task->room;
  RoomState state = room.start;
  std::vector<RoomCommand> admissible;
  for (const RoomCommand& command : play.commands) {
    if (!admits(room, state, command)) continue;
    apply_command(room, state, command);
    list_admissible(room, state, admissible);
    checksum += admissible.size() + (is_goal(room, state) ? 1 : 0);
  }
}

void play_texts(const RecordedPlay& play) {
  Alfworld game(play.task, 10);
  for (const std::string& text : play.texts) checksum += game.step(text).observation.size();
}

void play_texts_and_lists(const RecordedPlay& play) {
  Alfworld game(play.task, 10);
  for (const std::string& text : play.texts) {
    checksum += game.step(text).observation.size();
    checksum += game.admissible().size();
  }
}

void play_prompts(const RecordedPlay& play) {
  AlfworldConversation conversation({.max_steps = kSteps + 1}, Alfworld(play.task, 10));
  for (const std::string& response : play.responses) checksum += conversation.step(response).prompt.user.size();
}

void time_plays(const char* what, const std::vector<RecordedPlay>& plays, void (*once)(const RecordedPlay&)) {
  std::vector<double> rates;
  for (int round = 0; round < kRounds; ++round) {
    const double start = processor_seconds();
    for (const RecordedPlay& play : plays) once(play);
    const double seconds = processor_seconds() - start;
    rates.push_back(static_cast<double>(plays.size() * kSteps) / seconds);
  }
  std::sort(rates.begin(), rates.end());
  std::printf("%-58s %12.0f (%.0f to %.0f)\n", what, rates[kRounds / 2], rates.front(), rates.back());
}

int run(const std::string& folder, const std::string& split) {
  const double start = processor_seconds();
  auto games = read_alfworld_games(folder, split, {});
  if (!games) {
    std::fprintf(stderr, "%s\n", games.error().message.c_str());
    return 1;
  }
  const double seconds = processor_seconds() - start;
  std::printf("%zu games of %s read in %.2f s\n", games->size(), split.c_str(), seconds);
  std::vector<RecordedPlay> plays;
  for (AlfworldTask& game : *games) plays.push_back(record_play(std::move(game), plays.size()));

  std::printf("steps per second, a new game every %d steps: median (slowest to fastest of %d rounds)\n", kSteps,
              kRounds);
  time_plays("commands as values", plays, play_values);
  time_plays("commands as values, admissible ones listed", plays, play_values_and_lists);
  time_plays("strings: command parsed, answer written", plays, play_texts);
  time_plays("strings, and the admissible list as strings", plays, play_texts_and_lists);
  time_plays("responses and prompts of verl-agent", plays, play_prompts);
  std::printf("(%zu)\n", checksum);
  return 0;
}

}  // namespace
}  // namespace carnot

int main(int count, char** values) {
  if (count < 2) {
    std::fprintf(stderr, "usage: alfworld_bench FOLDER [SPLIT]\n");
    return 2;
  }
  return carnot::run(values[1], count > 2 ? values[2] : "valid_seen");
}
