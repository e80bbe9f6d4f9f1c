// Rows of a data set, as JSON lines or CSV, become tasks or an error. The first byte chooses the format.
#include <cstddef>
#include <cstdint>

#include "carnot/worlds/task_rows/rows.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(dataset_rows) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const carnot::DatasetColumns columns{.system = "{level}", .prompt = "{question} {hint} \\boxed{}"};
  const auto rows = carnot::parse_dataset(text, data[0] % 2 == 0 ? "rows.jsonl" : "rows.csv", columns);
  if (!rows) return 0;
  for (const carnot::DatasetRow& row : *rows)
    if (row.answers.empty() || row.json.empty()) __builtin_trap();
  return 0;
}
