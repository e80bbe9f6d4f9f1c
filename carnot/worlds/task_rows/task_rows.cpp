#include "carnot/worlds/task_rows/task_rows.h"

#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/rows/row_file.h"
#include "carnot/worlds/reward/answer_metrics.h"

namespace carnot {
namespace {

constexpr std::string_view kSolutionMark = "#### ";
constexpr std::string_view kGsm8k = "openai/gsm8k";

/// The keys of one row, and what is wrong with them.
class TaskRowReader {
 public:
  TaskRowReader(const OrderedJson& row, std::string where, std::vector<std::string>& problems)
      : row_(row), where_(std::move(where)), problems_(problems) {}

  TaskRow read() { return row_.contains("prompt") ? verl_row() : gsm8k_row(); }

 private:
  void problem(const std::string& key, const std::string& what) { problems_.push_back(where_ + key + ": " + what); }

  /// The member of that name; null and a problem where it is missing.
  const OrderedJson* member(const OrderedJson& object, const std::string& key, const std::string& path) {
    const auto found = object.find(key);
    if (found != object.end()) return &*found;
    problem(path, "this key is missing");
    return nullptr;
  }

  std::string text(const OrderedJson& object, const std::string& key, const std::string& path) {
    const OrderedJson* value = member(object, key, path);
    if (value == nullptr) return "";
    if (!value->is_string()) {
      problem(path, "expected a string, found " + std::string(value->type_name()));
      return "";
    }
    const auto& found = value->get_ref<const std::string&>();
    if (trim(found).empty()) problem(path, "expected a non-empty string");
    return found;
  }

  TaskRow gsm8k_row() {
    if (!row_.contains("question") && !row_.contains("answer")) {
      problem("question",
              "this key is missing; expected GSM8K's question and answer, or verl's prompt and reward_model");
      return {};
    }
    TaskRow task{.data_source = std::string(kGsm8k)};
    task.question = text(row_, "question", "question");
    task.solution = text(row_, "answer", "answer");
    task.ground_truth = solution_answer(task.solution);
    if (!task.solution.empty() && task.ground_truth.empty())
      problem("answer", "expected a solution that ends in a line `#### ANSWER`");
    return task;
  }

  TaskRow verl_row() {
    TaskRow task{.data_source = std::string(kGsm8k), .whole_prompt = true};
    if (row_.contains("data_source")) task.data_source = text(row_, "data_source", "data_source");
    read_prompt(task);
    if (const OrderedJson* reward = member(row_, "reward_model", "reward_model")) {
      if (reward->is_object())
        task.ground_truth = text(*reward, "ground_truth", "reward_model.ground_truth");
      else
        problem("reward_model", "expected an object, found " + std::string(reward->type_name()));
    }
    const auto extra = row_.find("extra_info");
    if (extra == row_.end() || !extra->is_object()) return task;
    const auto answer = extra->find("answer");
    if (answer != extra->end() && answer->is_string()) task.solution = answer->get<std::string>();
    return task;
  }

  void read_prompt(TaskRow& task) {
    const OrderedJson& prompt = row_.at("prompt");
    if (prompt.is_string()) {
      task.question = prompt.get<std::string>();
      return;
    }
    const std::size_t messages = prompt.is_array() ? prompt.size() : 0;
    if (messages < 1 || messages > 2)
      return problem(
          "prompt", "expected a user message, or a system and a user message, found " +
                        (prompt.is_array() ? std::to_string(messages) + " messages" : std::string(prompt.type_name())));
    for (std::size_t i = 0; i < messages; ++i) {
      const std::string path = "prompt[" + std::to_string(i) + "]";
      const std::string wanted = i + 1 == messages ? "user" : "system";
      if (!prompt[i].is_object()) {
        problem(path, "expected a message with role and content");
        continue;
      }
      const std::string role = text(prompt[i], "role", path + ".role");
      if (!role.empty() && role != wanted) problem(path + ".role", "expected '" + wanted + "', found '" + role + "'");
      (wanted == "user" ? task.question : task.system) = text(prompt[i], "content", path + ".content");
    }
  }

  const OrderedJson& row_;
  std::string where_;
  std::vector<std::string>& problems_;
};

}  // namespace

std::string solution_answer(std::string_view solution) {
  const auto mark = solution.rfind(kSolutionMark);
  if (mark == std::string_view::npos) return "";
  std::string answer(trim(solution.substr(mark + kSolutionMark.size())));
  std::erase(answer, ',');
  return answer;
}

Result<std::vector<TaskRow>> parse_task_rows(std::string_view text, const std::string& name) {
  std::vector<TaskRow> tasks;
  CARNOT_RETURN_IF_ERROR(
      read_rows(text, name, [&](const OrderedJson& row, const std::string& where, std::vector<std::string>& problems) {
        tasks.push_back(TaskRowReader(row, where, problems).read());
      }));
  return tasks;
}

Result<std::vector<TaskRow>> read_task_rows(const std::filesystem::path& path) {
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_row_text(path, "python3"));
  return parse_task_rows(text, path.string());
}

Result<std::filesystem::path> find_task_file(const std::filesystem::path& folder, const std::string& stem) {
  for (const char* ending : {".jsonl", ".jsonl.xz"}) {
    std::error_code ignored;
    const std::filesystem::path path = folder / (stem + ending);
    if (std::filesystem::is_regular_file(path, ignored)) return path;
  }
  return Error{folder.string() + ": holds neither " + stem + ".jsonl nor " + stem + ".jsonl.xz"};
}

}  // namespace carnot
