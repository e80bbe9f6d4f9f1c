// Whatever a policy says where tools are offered: each form reads calls, or says what is wrong, and what it read can be
// said and read again. The first byte chooses the form.
#include <cstddef>
#include <cstdint>
#include <string>

#include "carnot/core/base/check.h"
#include "carnot/core/text/tool_call_form.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(tool_calls) {
  using carnot::ToolCallForm;
  static const std::string kTool =
      R"({"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {)"
      R"("word": {"type": "string"}, "limit": {"type": ["integer", "null"]}, "exact": {"type": "boolean"}}}}})";
  if (size == 0) return 0;
  const auto forms = carnot::tool_call_forms();
  const ToolCallForm& form = *forms[data[0] % forms.size()];
  const auto read = form.parse({reinterpret_cast<const char*>(data + 1), size - 1}, {&kTool, 1});
  if (!read || read->empty() || (form.has_one_call() && read->size() != 1)) return 0;
  const std::string said = form.text_of("", *read);
  const auto again = form.parse(said, {&kTool, 1});  // an argument may spell the form's own tag
  CARNOT_CHECK(!again || *again == *read, said);
  return 0;
}
