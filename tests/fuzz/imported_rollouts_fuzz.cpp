// Any bytes are records of a format that serving/imported knows, each a group of trees without violations, or an error.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/text/chat_families.h"
#include "carnot/serving/imported/imported_groups.h"
#include "testing/small_tokenizer.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(imported_rollouts) {
  using namespace carnot;  // NOLINT: a function of its own
  static const std::unique_ptr<ChatFamily> chat =
      make_chat_family("chatml", carnot::testing::small_tokenizer()).value();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = parse_rollouts(text, "rows", "");
  if (!read) {
    CARNOT_CHECK(!read.error().message.empty(), "refused without a message");
    return 0;
  }
  CARNOT_CHECK_EQ(read->rollouts.size(), read->lines.size());
  const auto made = import_groups(*read, *chat, {});
  if (!made) return 0;
  for (const Group& group : made->groups)
    for (const Tree& tree : group.trees)
      CARNOT_CHECK(violations(tree).empty(), violations(tree).empty() ? "" : violations(tree).front());
  return 0;
}
