// worlds/alfworld/game_files.h -- ALFWorld's games from files: rows of JSON lines, or the published folders.
//
//   FOLDER/SPLIT.jsonl or SPLIT.jsonl.xz           {"split", "task_id", "trial_id", "task_type", "task", "walkthrough",
//                                                   "pddl_problem"}, a game a line
//   FOLDER/SPLIT/TASK_ID/TRIAL_ID/game.tw-pddl     {"grammar", "pddl_problem", "solvable", "walkthrough", ...}, as
//                                                   alfworld-download puts them into json_2.1.1
//
// SPLIT is train, valid_seen, valid_unseen or another name.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/worlds/alfworld/room.h"

namespace carnot {

struct AlfworldTask {
  std::string split{};
  std::string task_id{};                   ///< "pick_and_place_simple-Mug-None-Desk-308"
  std::string trial_id{};                  ///< "trial_T20190907_010203_456789"
  std::string task_type{};                 ///< "pick_and_place_simple"
  std::string sentence{};                  ///< "Your task is to: put a mug in desk."
  std::vector<std::string> walkthrough{};  ///< commands that win; empty if none is published
  Room room{};

  std::string name() const { return task_id + "/" + trial_id; }
  /// The sentence without "Your task is to: ".
  std::string_view task() const;
};

/// One row. `name` is for messages.
Result<AlfworldTask> parse_alfworld_row(std::string_view row, const std::string& name);

/// One game.tw-pddl. Its folder names split and ids: those of `task` are empty.
struct AlfworldGameFile {
  AlfworldTask task{};
  bool solvable = true;
};
Result<AlfworldGameFile> parse_alfworld_game(std::string_view text, const std::string& name);

struct AlfworldSelection {
  std::string game{};                     ///< TASK_ID/TRIAL_ID; empty: all
  std::vector<std::string> task_types{};  ///< empty: all
};

/// The games of a split, sorted by task and trial id, that the selection names. Of the published folders, those that
/// ALFWorld itself leaves out are passed over: not solvable, movable receptacles, sliced objects. The error lists what
/// is wrong with the first twenty, or says that there is no such split; none selected is no error.
Result<std::vector<AlfworldTask>> read_alfworld_games(const std::filesystem::path& folder, const std::string& split,
                                                      const AlfworldSelection& selection);

/// Whether the folder has the split, as a file or as a folder.
bool has_alfworld_split(const std::filesystem::path& folder, const std::string& split);

}  // namespace carnot
