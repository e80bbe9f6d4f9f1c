// Any two strings can be compared, with the same result both ways; an answer equals itself unless nothing is left of
// it.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/worlds/reward/maths_answer.h"
#include "carnot/worlds/reward/maths_normal_form.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(maths_answer) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = text.substr(0, text.find('\n'));
  const auto rest = text.substr(line.size());
  carnot::marked_answer(text);
  carnot::last_number(text);
  carnot::canonical_maths(line);
  const auto found = carnot::boxed_or_last_expression(text);
  CARNOT_CHECK(!found || found->size() <= text.size() + 1, "an answer is part of its response, and perhaps a sign");
  CARNOT_CHECK_EQ(carnot::maths_equal(line, rest), carnot::maths_equal(rest, line));
  CARNOT_CHECK_EQ(carnot::maths_equal(line, line), !carnot::normalize_maths(line).empty());
  return 0;
}
