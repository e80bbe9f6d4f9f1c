// Rows of demonstrations, as JSON lines or CSV, become sequences that end with what is said, or an error that names the
// file. The first byte chooses the format.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/rows/demonstration_files.h"
#include "carnot/core/text/chat_families.h"
#include "testing/small_tokenizer.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(demonstrations) {
  static const auto chat = carnot::make_chat_family("chatml", carnot::testing::small_tokenizer()).value();
  static const auto with_tools = carnot::make_chat_family("qwen3", carnot::testing::small_tokenizer()).value();
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::string name = data[0] % 2 == 0 ? "rows.jsonl" : "rows.csv";
  const auto tasks = carnot::parse_demonstrations(text, name, data[0] % 4 < 2 ? *chat : *with_tools, 500);
  if (!tasks) {
    CARNOT_CHECK(tasks.error().message.starts_with(name), tasks.error().message);
    return 0;
  }
  for (const carnot::DemonstratedTask& task : *tasks)
    for (const carnot::Demonstration& one : task)
      CARNOT_CHECK(one.is_said.size() == one.tokens.size() && one.tokens.size() <= 500, "a token is said or is not");
  return 0;
}
