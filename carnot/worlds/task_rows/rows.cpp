#include "carnot/worlds/task_rows/rows.h"

#include <algorithm>
#include <array>

#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/rows/row_file.h"

namespace carnot {
namespace {

constexpr std::array kQuestionNames{"question", "problem", "prompt", "messages", "input", "query", "instruction"};
constexpr std::array kAnswerNames{"answer",   "answers",      "golden_answers",
                                  "solution", "ground_truth", "reward_model.ground_truth",
                                  "target",   "output",       "label"};

/// The member under a dotted path; null if there is none.
const OrderedJson* at_path(const OrderedJson& row, std::string_view path) {
  const OrderedJson* place = &row;
  while (true) {
    if (!place->is_object()) return nullptr;
    // A column may have a period in its own name.
    if (const auto whole = place->find(std::string(path)); whole != place->end()) return &*whole;
    const std::size_t dot = path.find('.');
    const auto next = dot == std::string_view::npos ? place->end() : place->find(std::string(path.substr(0, dot)));
    if (next == place->end()) return nullptr;
    place = &*next;
    path.remove_prefix(dot + 1);
  }
}

std::string text_of(const OrderedJson& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string names_of(const OrderedJson& row) {
  std::vector<std::string> names;
  for (const auto& [name, value] : row.items()) names.push_back(name);
  return join(names);
}

/// Reads rows one by one. The first decides which of the usual names are meant.
class RowReader {
 public:
  explicit RowReader(const DatasetColumns& columns)
      : columns_(columns), question_(columns.question), answer_(columns.answer) {}

  DatasetRow read(const OrderedJson& row, const std::string& where, std::vector<std::string>& problems) {
    if (has_wrong_name_) return {};
    if (++num_read_ == 1) {
      if (question_.empty()) question_ = known_name(row, kQuestionNames);
      if (answer_.empty()) answer_ = known_name(row, kAnswerNames);
    }
    where_ = where;
    problems_ = &problems;
    DatasetRow out{.json = row.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)};
    std::string question;
    if (const OrderedJson* found = column(row, question_, "env.question"); found != nullptr) {
      if (found->is_array())
        read_messages(*found, out, question);
      else
        question = text_of(*found);
      const bool is_answered = question.empty() && !out.history.empty() && out.history.back().role == "assistant";
      if (trim(question).empty())
        problem(question_,
                is_answered ? "ends with the assistant; expected the user's question (sft.source takes demonstrations)"
                            : "expected a non-empty string");
    }
    const std::map<std::string, std::string, std::less<>> own{{"question", question}};
    if (!columns_.system.empty()) out.system = fill_template(columns_.system, row, own);
    out.user = fill_template(columns_.prompt, row, own);
    out.question = std::move(question);
    out.info = {{"question", out.user}};
    read_answers(row, out);
    return out;
  }

 private:
  void problem(const std::string& column, const std::string& what) {
    problems_->push_back(where_ + column + ": " + what);
  }

  template <std::size_t n>
  static std::string known_name(const OrderedJson& row, const std::array<const char*, n>& names) {
    const auto found = std::find_if(names.begin(), names.end(), [&](const char* name) { return at_path(row, name); });
    return found == names.end() ? "" : *found;
  }

  const OrderedJson* column(const OrderedJson& row, const std::string& name, const std::string& key) {
    const OrderedJson* found = name.empty() ? nullptr : at_path(row, name);
    if (found != nullptr && !found->is_null()) return found;
    const bool is_named = name == columns_.question || name == columns_.answer;  // or, both empty, it should be
    problem(name.empty() ? key : name,
            (is_named ? "no such column; " + key + " names it" : "no such column, which other rows have") +
                ", expected one of " + names_of(row));
    has_wrong_name_ |= is_named && num_read_ == 1;
    return nullptr;
  }

  /// A list of messages: a system message, then turns; the last is the question.
  void read_messages(const OrderedJson& messages, DatasetRow& out, std::string& question) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const OrderedJson& one = messages[i];
      const std::string place = question_ + "[" + std::to_string(i) + "]";
      if (!one.is_object() || !one.value("role", OrderedJson()).is_string() ||
          !one.value("content", OrderedJson()).is_string()) {
        problem(place, "expected a message {\"role\", \"content\"}");
        continue;
      }
      const std::string role = one["role"], content = one["content"];
      if (role == "system" && i == 0)
        out.system = content;
      else if (i + 1 == messages.size() && role == "user")
        question = content;
      else if (role == "user" || role == "assistant")
        out.history.push_back({.role = role, .content = content});
      else
        problem(place, "role \"" + role +
                           "\"; expected a system message first, then user and assistant, user last (sft.source takes "
                           "demonstrations)");
    }
  }

  void read_answers(const OrderedJson& row, DatasetRow& out) {
    // Every row has the column that is named, or that other rows have.
    if (!columns_.needs_answer && answer_.empty()) return;
    const OrderedJson* found = column(row, answer_, "env.answer");
    if (found == nullptr) return;
    if (found->is_object() || (found->is_array() && found->empty()))
      return problem(answer_,
                     "expected a string, a number or a list of them, found " + std::string(found->type_name()));
    if (!found->is_array()) return out.answers.push_back(text_of(*found));
    for (const OrderedJson& one : *found) out.answers.push_back(text_of(one));
  }

  const DatasetColumns& columns_;
  std::string question_, answer_;
  std::string where_{};
  std::vector<std::string>* problems_ = nullptr;
  std::int64_t num_read_ = 0;
  bool has_wrong_name_ = false;  ///< in the first row: then it is wrong in all
};

}  // namespace

std::string fill_template(std::string_view text, const OrderedJson& row,
                          const std::map<std::string, std::string, std::less<>>& own) {
  std::string out;
  while (!text.empty()) {
    const std::size_t open = std::min(text.find('{'), text.size());
    out += text.substr(0, open);
    text.remove_prefix(open);
    const std::size_t close = text.find('}');
    if (close == std::string_view::npos) return out.append(text);
    const std::string_view name = text.substr(1, close - 1);
    const auto value = own.find(name);
    const OrderedJson* column = value != own.end() ? nullptr : at_path(row, name);
    if (value == own.end() && column == nullptr) {
      out += '{';
      text.remove_prefix(1);
      continue;
    }
    out += column == nullptr ? value->second : text_of(*column);
    text.remove_prefix(close + 1);
  }
  return out;
}

Result<std::vector<DatasetRow>> parse_dataset(std::string_view text, const std::string& name,
                                              const DatasetColumns& columns) {
  RowReader reader(columns);
  std::vector<DatasetRow> rows;
  CARNOT_RETURN_IF_ERROR(
      read_rows(text, name, [&](const OrderedJson& row, const std::string& where, std::vector<std::string>& problems) {
        rows.push_back(reader.read(row, where, problems));
      }));
  return rows;
}

Result<std::vector<DatasetRow>> read_dataset(const std::filesystem::path& path, const DatasetColumns& columns,
                                             const std::string& python) {
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_row_text(path, python));
  return parse_dataset(text, path.string(), columns);
}

}  // namespace carnot
