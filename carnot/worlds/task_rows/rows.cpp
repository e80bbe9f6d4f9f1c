#include "carnot/worlds/task_rows/rows.h"

#include <algorithm>
#include <array>
#include <optional>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/strings.h"
#include "carnot/worlds/task_rows/parquet.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

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

/// Reads rows one by one and collects what is wrong.
class RowReader {
 public:
  RowReader(const DatasetColumns& columns, const OrderedJson& first) : columns_(columns) {
    question_ = columns.question.empty() ? known_name(first, kQuestionNames) : columns.question;
    answer_ = columns.answer.empty() ? known_name(first, kAnswerNames) : columns.answer;
  }

  DatasetRow read(const OrderedJson& row, const std::string& where) {
    where_ = where;
    ++num_read_;
    DatasetRow out{.json = row.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)};
    std::string question;
    if (const OrderedJson* found = column(row, question_, "env.question"); found != nullptr) {
      if (found->is_array())
        read_messages(*found, out, question);
      else
        question = text_of(*found);
    }
    if (trim(question).empty()) problem(question_.empty() ? "question" : question_, "expected a non-empty string");
    const std::map<std::string, std::string, std::less<>> own{{"question", question}};
    if (!columns_.system.empty()) out.system = fill_template(columns_.system, row, own);
    out.user = fill_template(columns_.prompt, row, own);
    out.question = std::move(question);
    out.info = {{"question", out.user}};
    read_answers(row, out);
    return out;
  }

  const std::vector<std::string>& problems() const { return problems_; }
  /// A name that is wrong in the first row is wrong in all.
  bool is_full() const { return has_wrong_name_ || problems_.size() >= kMaxProblems; }
  void problem(const std::string& column, const std::string& what) {
    if (problems_.size() < kMaxProblems) problems_.push_back(where_ + column + ": " + what);
  }

 private:
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
        problem(place, "role \"" + role + "\"; expected a system message first, then user and assistant, user last");
    }
  }

  void read_answers(const OrderedJson& row, DatasetRow& out) {
    // A column that somebody named, or that other rows have, is not passed over.
    if (!columns_.needs_answer && answer_.empty()) return;
    const OrderedJson* found = column(row, answer_, "env.answer");
    if (found == nullptr) return;
    if (found->is_object() || (found->is_array() && found->empty()))
      return problem(answer_,
                     "expected a string, a number or a list of them, found " + std::string(found->type_name()));
    if (!found->is_array()) {
      out.answers.push_back(text_of(*found));
      return;
    }
    for (const OrderedJson& one : *found) out.answers.push_back(text_of(one));
  }

  const DatasetColumns& columns_;
  std::string question_{}, answer_{};
  std::string where_{};
  std::vector<std::string> problems_{};
  int num_read_ = 0;
  bool has_wrong_name_ = false;
};

/// A row as JSON, and its place for messages.
struct PlacedRow {
  OrderedJson row{};
  std::string where{};
};

Result<std::vector<PlacedRow>> json_rows(std::string_view text, const std::string& name) {
  std::vector<PlacedRow> rows;
  std::vector<std::string> problems;
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    if (trim(line).empty()) continue;
    const std::string where = name + ":" + std::to_string(number);
    auto parsed = parse_json_object<OrderedJson>(line, where);
    if (!parsed)
      problems.push_back(parsed.error().message);
    else
      rows.push_back({.row = std::move(parsed).value(), .where = where + ": "});
    if (problems.size() == kMaxProblems) break;
  }
  if (!problems.empty()) return join_errors(problems);
  return rows;
}

Result<std::vector<PlacedRow>> array_rows(std::string_view text, const std::string& name) {
  CARNOT_ASSIGN_OR_RETURN(auto array, parse_json<OrderedJson>(text, name));
  std::vector<PlacedRow> rows;
  std::vector<std::string> problems;
  for (OrderedJson& row : array) {
    const std::string where = name + "[" + std::to_string(rows.size() + problems.size()) + "]: ";
    if (row.is_object())
      rows.push_back({.row = std::move(row), .where = where});
    else if (problems.size() < kMaxProblems)
      problems.push_back(where + "expected an object, found " + row.type_name());
  }
  if (!problems.empty()) return join_errors(problems);
  return rows;
}

Result<std::vector<PlacedRow>> csv_rows(std::string_view text, const std::string& name) {
  CARNOT_ASSIGN_OR_RETURN(const auto records, parse_csv(text, name));
  std::vector<PlacedRow> rows;
  std::vector<std::string> problems;
  for (std::size_t r = 1; r < records.size(); ++r) {
    const auto& header = records.front();
    const auto& record = records[r];
    const std::string where = name + ", record " + std::to_string(r) + ": ";
    if (record.size() != header.size()) {
      problems.push_back(where + std::to_string(record.size()) + " fields; expected " + std::to_string(header.size()) +
                         ", as in the header");
      if (problems.size() == kMaxProblems) break;
      continue;
    }
    OrderedJson row = OrderedJson::object();
    for (std::size_t c = 0; c < header.size(); ++c) row[header[c]] = record[c];
    rows.push_back({.row = std::move(row), .where = where});
  }
  if (!problems.empty()) return join_errors(problems);
  return rows;
}

/// What separates the fields of the header, and thus of all records.
char csv_separator(std::string_view text) {
  std::ptrdiff_t commas = 0, semicolons = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '\n' && !quoted) break;
    if (c == '"') quoted = !quoted;
    commas += !quoted && c == ',' ? 1 : 0;
    semicolons += !quoted && c == ';' ? 1 : 0;
  }
  return semicolons > commas ? ';' : ',';
}

bool is_csv(const std::string& name) { return name.ends_with(".csv") || name.ends_with(".csv.xz"); }

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

Result<std::vector<std::vector<std::string>>> parse_csv(std::string_view text, const std::string& name) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const char separator = csv_separator(text);
  std::vector<std::vector<std::string>> records;
  std::vector<std::string> record{""};
  bool quoted = false, was_quoted = false;
  int line = 1, quote_line = 1;
  const auto end_record = [&] {
    if (record.size() > 1 || !record.front().empty() || was_quoted) records.push_back(std::move(record));
    record = {""};
    was_quoted = false;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"')
        record.back() += c;
      else if (i + 1 < text.size() && text[i + 1] == '"')
        record.back() += text[++i];
      else
        quoted = false;
    } else if (c == '"' && record.back().empty()) {
      quoted = was_quoted = true;
      quote_line = line;
    } else if (c == separator) {
      record.emplace_back();
    } else if (c == '\n') {
      end_record();
    } else if (c != '\r' || i + 1 == text.size() || text[i + 1] != '\n') {
      record.back() += c;
    }
  }
  if (quoted) return Error{name + ":" + std::to_string(quote_line) + ": a quoted field without its end"};
  end_record();
  return records;
}

Result<std::vector<DatasetRow>> parse_dataset(std::string_view text, const std::string& name,
                                              const DatasetColumns& columns) {
  const bool is_array = trim(text).starts_with('[');
  const auto rows = is_csv(name) ? csv_rows(text, name) : is_array ? array_rows(text, name) : json_rows(text, name);
  if (!rows) return rows.error();
  if (rows->empty()) return Error{name + ": no rows"};
  RowReader reader(columns, rows->front().row);
  std::vector<DatasetRow> out;
  for (const PlacedRow& one : *rows) {
    out.push_back(reader.read(one.row, one.where));
    if (reader.is_full()) break;
  }
  if (!reader.problems().empty()) return join_errors(reader.problems());
  return out;
}

Result<std::vector<DatasetRow>> read_dataset(const fs::path& path, const DatasetColumns& columns,
                                             const std::string& python) {
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_maybe_compressed(path));
  if (!is_parquet(text)) return parse_dataset(text, path.string(), columns);
  CARNOT_ASSIGN_OR_RETURN(const auto lines, parquet_as_json_lines(path, python));
  return parse_dataset(lines, path.string(), columns);
}

}  // namespace carnot
