#include "carnot/core/rows/row_file.h"

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/rows/csv.h"
#include "carnot/core/rows/parquet.h"

namespace carnot {
namespace {

bool is_csv(const std::string& name) { return name.ends_with(".csv") || name.ends_with(".csv.xz"); }

/// Counts rows and collects problems.
class RowWalk {
 public:
  explicit RowWalk(const TakeRow& take) : take_(take) {}

  /// False once there are as many problems as are listed.
  bool visit(const Result<OrderedJson>& row, const std::string& where) {
    ++rows_;
    if (row)
      take_(*row, where + ": ", problems_);
    else
      problems_.push_back(row.error().message);
    return problems_.size() < kMaxProblems;
  }

  Status finish(const std::string& name) {
    if (problems_.size() > kMaxProblems) problems_.resize(kMaxProblems);
    if (!problems_.empty()) return join_errors(problems_);
    return rows_ > 0 ? Status(Done{}) : Error{name + ": no rows"};
  }

 private:
  const TakeRow& take_;
  std::vector<std::string> problems_{};
  std::int64_t rows_ = 0;
};

void walk_lines(std::string_view text, const std::string& name, RowWalk& walk) {
  int number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    if (trim(line).empty()) continue;
    const std::string where = name + ":" + std::to_string(number);
    if (!walk.visit(parse_json_object<OrderedJson>(line, where), where)) return;
  }
}

Status walk_array(std::string_view text, const std::string& name, RowWalk& walk) {
  CARNOT_ASSIGN_OR_RETURN(auto array, parse_json<OrderedJson>(text, name));
  for (std::size_t i = 0; i < array.size(); ++i) {
    const std::string where = name + "[" + std::to_string(i) + "]";
    const bool is_object = array[i].is_object();
    const std::string problem = where + ": expected an object, found " + array[i].type_name();
    if (!walk.visit(is_object ? Result<OrderedJson>(std::move(array[i])) : Error{problem}, where)) break;
  }
  return Done{};
}

Status walk_records(std::string_view text, const std::string& name, RowWalk& walk) {
  CARNOT_ASSIGN_OR_RETURN(const auto records, parse_csv(text, name));
  for (std::size_t r = 1; r < records.size(); ++r) {
    const auto &header = records.front(), &record = records[r];
    const std::string where = name + ", record " + std::to_string(r);
    Result<OrderedJson> row = OrderedJson::object();
    if (record.size() != header.size())
      row = Error{where + ": " + std::to_string(record.size()) + " fields; expected " + std::to_string(header.size()) +
                  ", as in the header"};
    for (std::size_t c = 0; row && c < header.size(); ++c) (*row)[header[c]] = record[c];
    if (!walk.visit(row, where)) break;
  }
  return Done{};
}

}  // namespace

Status read_rows(std::string_view text, const std::string& name, const TakeRow& take) {
  RowWalk walk(take);
  if (is_csv(name))
    CARNOT_RETURN_IF_ERROR(walk_records(text, name, walk));
  else if (trim(text).starts_with('['))
    CARNOT_RETURN_IF_ERROR(walk_array(text, name, walk));
  else
    walk_lines(text, name, walk);
  return walk.finish(name);
}

Result<std::string> read_row_text(const std::filesystem::path& path, const std::string& python) {
  auto text = read_maybe_compressed(path);
  return text && is_parquet(*text) ? parquet_as_json_lines(path, python) : text;
}

}  // namespace carnot
