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
  static const ToolCallForm* const kForms[] = {&carnot::tagged_tool_calls(), &carnot::bare_tool_call(),
                                               &carnot::spaced_listed_tool_calls()};
  if (size == 0) return 0;
  const ToolCallForm& form = *kForms[data[0] % std::size(kForms)];
  const auto read = form.parse({reinterpret_cast<const char*>(data + 1), size - 1});
  if (!read || read->empty() || (form.has_one_call() && read->size() != 1)) return 0;
  const std::string said = form.head() + form.written("", *read);
  const auto again = form.parse(said);  // an argument may spell the form's own tag
  CARNOT_CHECK(!again || *again == *read, said);
  return 0;
}
