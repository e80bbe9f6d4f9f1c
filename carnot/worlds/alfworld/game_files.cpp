#include "carnot/worlds/alfworld/game_files.h"

#include <algorithm>
#include <system_error>
#include <tuple>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

constexpr std::string_view kTaskLead = "Your task is to: ";
constexpr std::string_view kGameFile = "game.tw-pddl";

/// Members of a JSON object, and what is wrong with them.
class GameMembers {
 public:
  GameMembers(const nlohmann::json& object, std::string name) : object_(object), name_(std::move(name)) {}

  std::string text(const std::string& key) {
    const auto found = object_.find(key);
    if (found == object_.end()) return problem(key, "this key is missing"), "";
    if (!found->is_string()) return problem(key, "expected a string, found " + std::string(found->type_name())), "";
    return found->get<std::string>();
  }

  /// A string, or a list of strings.
  std::vector<std::string> texts(const std::string& key) {
    const auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) return {};
    if (found->is_string()) return {found->get<std::string>()};
    std::vector<std::string> all;
    if (found->is_array())
      for (const nlohmann::json& one : *found)
        if (one.is_string()) all.push_back(one.get<std::string>());
    if (!found->is_array() || all.size() != found->size()) problem(key, "expected a list of strings");
    return all;
  }

  void problem(const std::string& key, const std::string& what) {
    problems_.push_back(name_ + ": " + key + ": " + what);
  }

  /// The room of "pddl_problem", and all problems.
  Status read_room(Room& room) {
    const std::string problem_text = text("pddl_problem");
    if (problems_.empty()) {
      auto parsed = parse_room(problem_text, name_ + ": pddl_problem");
      if (parsed) room = std::move(parsed).value();
      if (!parsed) problems_.push_back(parsed.error().message);
    }
    if (!problems_.empty()) return join_errors(problems_);
    return Done{};
  }

  void check_sentence(const std::string& key, const std::string& sentence) {
    if (!sentence.starts_with(kTaskLead))
      problem(key, "expected one sentence that begins with '" + std::string(kTaskLead) + "'");
  }

 private:
  const nlohmann::json& object_;
  std::string name_;
  std::vector<std::string> problems_{};
};

/// The JSON text of the grammar that holds the rule `task`: the first one of the file.
Result<std::string> task_rule(const std::string& grammar, const std::string& name) {
  constexpr std::string_view kFence = "\"\"\"";
  const auto open = grammar.find(kFence);
  const auto close = open == std::string::npos ? open : grammar.find(kFence, open + kFence.size());
  if (close == std::string::npos) return Error{name + ": grammar: expected rules between two \"\"\""};
  CARNOT_ASSIGN_OR_RETURN(
      const auto rules,
      parse_json_object(grammar.substr(open + kFence.size(), close - open - kFence.size()), name + ": grammar"));
  const auto task = rules.find("task");
  if (task == rules.end() || !task->is_array() || task->size() != 1 || !task->front().is_object() ||
      !task->front().contains("rhs") || !task->front()["rhs"].is_string())
    return Error{name + ": grammar: expected the rule task with one sentence"};
  return task->front()["rhs"].get<std::string>();
}

/// Empty if there is none.
std::filesystem::path split_file(const std::filesystem::path& folder, const std::string& split) {
  std::error_code ignored;
  for (const char* ending : {".jsonl", ".jsonl.xz"})
    if (std::filesystem::is_regular_file(folder / (split + ending), ignored)) return folder / (split + ending);
  return {};
}

std::string type_of_task(const std::string& task_id) { return task_id.substr(0, task_id.find('-')); }

bool is_selected(const AlfworldSelection& selection, const std::string& name, const std::string& type) {
  if (!selection.game.empty() && selection.game != name) return false;
  return selection.task_types.empty() ||
         std::find(selection.task_types.begin(), selection.task_types.end(), type) != selection.task_types.end();
}

/// Games as they are read, and what is wrong with the others.
class GameReader {
 public:
  explicit GameReader(const AlfworldSelection& selection) : selection_(selection) {}

  void read_rows(const std::string& text, const std::string& name) {
    const auto slash = selection_.game.find('/');
    const std::string trial = slash == std::string::npos ? "" : selection_.game.substr(slash + 1);
    std::size_t number = 0;
    for (const std::string_view line : split_lines(text)) {
      ++number;
      if (full()) return;
      // Parsing all rows for the sake of one takes seconds.
      if (trim(line).empty() || line.find(trial) == std::string_view::npos) continue;
      auto game = parse_alfworld_row(line, name + ":" + std::to_string(number));
      if (!game)
        problems_.push_back(game.error().message);
      else if (is_selected(selection_, game->name(), game->task_type))
        games_.push_back(std::move(*game));
    }
  }

  void read_folder(const std::filesystem::path& folder) {
    std::error_code failed;
    std::vector<std::filesystem::path> files;
    using Walk = std::filesystem::recursive_directory_iterator;
    constexpr auto kFollow = std::filesystem::directory_options::follow_directory_symlink;
    for (Walk walk(folder, kFollow, failed); !failed && walk != Walk(); walk.increment(failed)) {
      if (walk.depth() >= 2) walk.disable_recursion_pending();
      if (walk.depth() == 2 && walk->path().filename() == kGameFile) files.push_back(walk->path());
    }
    if (failed) problems_.push_back(folder.string() + ": " + failed.message());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      if (full()) return;
      read_game_file(file, folder.filename().string());
    }
  }

  Result<std::vector<AlfworldTask>> games() && {
    if (!problems_.empty()) return join_errors(problems_);
    std::sort(games_.begin(), games_.end(), [](const AlfworldTask& a, const AlfworldTask& b) {
      return std::tie(a.task_id, a.trial_id) < std::tie(b.task_id, b.trial_id);
    });
    return std::move(games_);
  }

 private:
  bool full() const { return problems_.size() >= kMaxProblems; }

  void read_game_file(const std::filesystem::path& file, const std::string& split) {
    const std::string trial = file.parent_path().filename().string();
    const std::string task = file.parent_path().parent_path().filename().string();
    if (task.find("movable") != std::string::npos || task.find("Sliced") != std::string::npos) return;
    if (!is_selected(selection_, task + "/" + trial, type_of_task(task))) return;
    const auto text = read_file(file);
    if (!text) return problems_.push_back(text.error().message);
    auto game = parse_alfworld_game(*text, file.string());
    if (!game) return problems_.push_back(game.error().message);
    if (!game->solvable) return;
    game->task.split = split;
    game->task.task_id = task;
    game->task.trial_id = trial;
    game->task.task_type = type_of_task(task);
    games_.push_back(std::move(game->task));
  }

  const AlfworldSelection& selection_;
  std::vector<AlfworldTask> games_{};
  std::vector<std::string> problems_{};
};

}  // namespace

std::string_view AlfworldTask::task() const { return std::string_view(sentence).substr(kTaskLead.size()); }

Result<AlfworldTask> parse_alfworld_row(std::string_view row, const std::string& name) {
  CARNOT_ASSIGN_OR_RETURN(const auto object, parse_json_object(row, name));
  GameMembers members(object, name);
  AlfworldTask game{.split = members.text("split"),
                    .task_id = members.text("task_id"),
                    .trial_id = members.text("trial_id"),
                    .task_type = members.text("task_type"),
                    .walkthrough = members.texts("walkthrough")};
  const std::vector<std::string> sentences = members.texts("task");
  if (sentences.size() == 1) game.sentence = sentences.front();
  members.check_sentence("task", game.sentence);
  CARNOT_RETURN_IF_ERROR(members.read_room(game.room));
  return game;
}

Result<AlfworldGameFile> parse_alfworld_game(std::string_view text, const std::string& name) {
  CARNOT_ASSIGN_OR_RETURN(const auto object, parse_json_object(text, name));
  GameMembers members(object, name);
  AlfworldGameFile game;
  game.task.walkthrough = members.texts("walkthrough");
  if (const auto solvable = object.find("solvable"); solvable != object.end())
    game.solvable = !solvable->is_boolean() || solvable->get<bool>();
  const std::string grammar = members.text("grammar");
  if (!grammar.empty() && grammar.find("\"move {o} to {r}\"") == std::string::npos)
    members.problem("grammar",
                    "expected the commands of json_2.1.1 (\"move {o} to {r}\"), found those of another release");
  if (!grammar.empty()) {
    CARNOT_ASSIGN_OR_RETURN(auto sentence, task_rule(grammar, name));
    game.task.sentence = std::move(sentence);
    members.check_sentence("grammar", game.task.sentence);
  }
  CARNOT_RETURN_IF_ERROR(members.read_room(game.task.room));
  return game;
}

bool has_alfworld_split(const std::filesystem::path& folder, const std::string& split) {
  std::error_code ignored;
  return !split_file(folder, split).empty() || std::filesystem::is_directory(folder / split, ignored);
}

Result<std::vector<AlfworldTask>> read_alfworld_games(const std::filesystem::path& folder, const std::string& split,
                                                      const AlfworldSelection& selection) {
  if (!has_alfworld_split(folder, split))
    return Error{folder.string() + ": holds neither " + split + ".jsonl nor " + split + ".jsonl.xz nor the folder " +
                 split};
  GameReader reader(selection);
  const std::filesystem::path path = split_file(folder, split);
  if (path.empty()) {
    reader.read_folder(folder / split);
  } else {
    CARNOT_ASSIGN_OR_RETURN(const auto text, read_maybe_compressed(path));
    reader.read_rows(text, path.string());
  }
  return std::move(reader).games();
}

}  // namespace carnot
