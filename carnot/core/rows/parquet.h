// rows/parquet.h -- rows of Parquet files, read by python/parquet_to_jsonl.py.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

/// Whether the bytes of a file begin as Parquet does.
bool is_parquet(std::string_view bytes);

/// The rows as JSON lines; `python` is the interpreter, which needs pyarrow. The error says how to convert the file.
Result<std::string> parquet_as_json_lines(const std::filesystem::path& file, const std::string& python);

}  // namespace carnot
