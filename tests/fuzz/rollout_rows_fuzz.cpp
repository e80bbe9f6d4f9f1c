// Any bytes are rollout rows or a message that says where; what is read satisfies the tree's invariants.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/data/rollout_file.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(rollout_rows) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = carnot::parse_rollout_rows(text, "rows.jsonl");
  if (!file.ok()) {
    CARNOT_CHECK(file.error().message.starts_with("rows.jsonl"), file.error().message);
    return 0;
  }
  for (const carnot::Group& group : file->groups)
    for (const carnot::Tree& tree : group.trees)
      CARNOT_CHECK(carnot::violations(tree).empty(), "a row that is read makes a sound tree");
  const std::string again = carnot::rollout_rows(file->groups, file->credit, {});
  CARNOT_CHECK(carnot::parse_rollout_rows(again, "again.jsonl").ok(), "what is written reads back");
  return 0;
}
