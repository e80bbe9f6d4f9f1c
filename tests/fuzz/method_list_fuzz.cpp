// Any bytes are a composition that builds, or messages that say which part is wrong.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/method/method.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(method_list) {
  const auto recipe = carnot::parse_method({reinterpret_cast<const char*>(data), size});
  if (!recipe.ok()) {
    CARNOT_CHECK(!recipe.error().message.empty(), "a refusal says why");
    return 0;
  }
  const carnot::Method method = carnot::build_method(*recipe);
  CARNOT_CHECK(!method.credit.empty(), "a method gives credit");
  const auto again = carnot::parse_method(method.name);
  CARNOT_CHECK(again.ok() && carnot::build_method(*again).name == method.name, method.name);
  return 0;
}
