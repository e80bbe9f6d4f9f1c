// worlds/task_rows/task_rows.h -- tasks from files of rows (rows/row_file.h): GSM8K's own and verl's.
//
//   {"question": "...", "answer": "... #### 18"}                                          GSM8K
//   {"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "..."}],       verl
//    "reward_model": {"style": "rule", "ground_truth": "18"}, "extra_info": {"answer": "... #### 18"}}
//
// A row with the key `prompt` is verl's. Unknown keys are ignored.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

struct TaskRow {
  std::string data_source{};  ///< "openai/gsm8k" where the row does not say
  std::string system{};       ///< of the row's prompt; empty if it has none
  std::string question{};     ///< the user message, where `whole_prompt`; otherwise the bare question
  bool whole_prompt = false;  ///< the row has its own prompt: nothing is appended
  std::string ground_truth{};
  std::string solution{};  ///< a worked solution; empty if the row has none
};

/// Every row of `text`. The error names file, line and key, and what was expected there, for all bad rows at once (the
/// first twenty). `name` is for messages.
Result<std::vector<TaskRow>> parse_task_rows(std::string_view text, const std::string& name);

/// The same from a file.
Result<std::vector<TaskRow>> read_task_rows(const std::filesystem::path& path);

/// `folder`/STEM.jsonl, or STEM.jsonl.xz; the error names both.
Result<std::filesystem::path> find_task_file(const std::filesystem::path& folder, const std::string& stem);

/// The text after the last `#### ` of a GSM8K solution, without commas and white space around it; empty if there
/// is no such mark.
std::string solution_answer(std::string_view solution);

}  // namespace carnot
