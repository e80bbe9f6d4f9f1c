// rows/row_file.h -- the rows of a file as JSON objects: JSON lines, a JSON array, CSV, Parquet.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

/// Takes a row, or adds to `problems` what is wrong with it, beginning with `where` ("rows.jsonl:3: ").
using TakeRow = std::function<void(const nlohmann::ordered_json& row, const std::string& where,
                                   std::vector<std::string>& problems)>;

/// Gives every row to `take`, in order. Rows are JSON objects, one a line (blank lines are skipped) or in one array;
/// or, where the name ends in .csv (.csv.xz), records below a header, all of whose values are strings. The error has
/// all problems, `take`'s too, in the order of the rows, up to kMaxProblems. A text without rows is an error.
Status read_rows(std::string_view text, const std::string& name, const TakeRow& take);

/// The file's text, decompressed where its name ends in .xz. A Parquet file becomes JSON lines by `python`, which needs
/// pyarrow (rows/parquet.h).
Result<std::string> read_row_text(const std::filesystem::path& path, const std::string& python);

}  // namespace carnot
