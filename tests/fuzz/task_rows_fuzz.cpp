// Any bytes are rows with a question and an answer, or a message that says where.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/worlds/task_rows/task_rows.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(task_rows) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rows = carnot::parse_task_rows(text, "/nowhere/rows.jsonl");
  if (!rows.ok()) {
    CARNOT_CHECK(rows.error().message.starts_with("/nowhere/rows.jsonl"), rows.error().message);
    return 0;
  }
  for (const carnot::TaskRow& row : *rows) CARNOT_CHECK(!row.ground_truth.empty(), "a row has an answer");
  return 0;
}
