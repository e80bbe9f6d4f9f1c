// worlds/task_rows/rows.h -- rows of a data set from a file of JSON or CSV, and the columns that make a task.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/message.h"

namespace carnot {

/// Which columns are read, and how they become messages. A column may lie within others: reward_model.ground_truth.
struct DatasetColumns {
  std::string question{};            ///< text, or a list of messages; empty: the first of the usual names
  std::string answer{};              ///< text, number, or a list of them; empty: the first of the usual names
  std::string system{};              ///< text of the system message, with {column} in it
  std::string prompt{"{question}"};  ///< of the user message; {question} is the question, {column} any column
  bool needs_answer = true;
};

struct DatasetRow {
  std::vector<Message> history{};  ///< messages before the last
  std::string system{};
  std::string question{};  ///< as the row has it
  std::string user{};      ///< as the policy is asked
  std::vector<std::string> answers{};
  std::string solution{};                     ///< a worked one, for demonstrations; empty if the row has none
  std::map<std::string, std::string> info{};  ///< for reports; has "question"
  std::string json{};                         ///< the row itself
};

/// `text` with values in place of {name}: those of `own`, else the row's columns; other braces stay, as in \boxed{}.
std::string fill_template(std::string_view text, const nlohmann::ordered_json& row,
                          const std::map<std::string, std::string, std::less<>>& own);

/// The rows of a text (rows/row_file.h), as tasks. The error names line, column and what was expected, for all bad rows
/// at once (the first twenty).
Result<std::vector<DatasetRow>> parse_dataset(std::string_view text, const std::string& name,
                                              const DatasetColumns& columns);

/// The same from a file; `python` reads Parquet.
Result<std::vector<DatasetRow>> read_dataset(const std::filesystem::path& path, const DatasetColumns& columns,
                                             const std::string& python = "python3");

}  // namespace carnot
