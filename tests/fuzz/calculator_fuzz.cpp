// Whatever a policy calculates has a finite value, which reads back, or is refused with a message.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/tools/calculator/expression.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(calculator) {
  const auto value = carnot::calculate({reinterpret_cast<const char*>(data), size});
  if (!value) {
    CARNOT_CHECK(!value.error().message.empty(), "a sentence");
    return 0;
  }
  CARNOT_CHECK(std::isfinite(*value), "a finite value");
  CARNOT_CHECK_EQ(carnot::calculate(carnot::exact_text(*value)).value(), *value);
  return 0;
}
