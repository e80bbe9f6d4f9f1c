// Any bytes are a trainer's state that reads back from its own JSON, or a message that names the file.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/run/trainer_state.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(trainer_state) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto state = carnot::parse_trainer_state(text, "trainer_state.json");
  if (!state.ok()) {
    CARNOT_CHECK(state.error().message.starts_with("trainer_state.json:"), state.error().message);
    return 0;
  }
  CARNOT_CHECK(state->step >= 0, "steps are counted");
  const std::string json = carnot::trainer_state_json(*state);
  const auto again = carnot::parse_trainer_state(json, "trainer_state.json");
  CARNOT_CHECK(again.ok() && *again == *state, json);
  return 0;
}
