// Whatever a process answers becomes a message of the environment, or a PeerFailure. The first byte chooses the
// message.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/json.h"
#include "carnot/worlds/process/messages.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(process_answers) {
  if (size == 0) return 0;
  auto parsed = carnot::parse_json({reinterpret_cast<const char*>(data + 1), size - 1}, "answer");
  if (!parsed || !parsed->is_object()) return 0;
  const carnot::PeerAnswer answer{.value = std::make_shared<const carnot::Json>(std::move(parsed).value()),
                                  .where = "answer"};
  try {
    switch (data[0] % 4) {
      case 0: (void)carnot::read_greeting(answer); break;
      case 1: (void)carnot::read_opening(answer); break;
      case 2: (void)carnot::read_reply(answer); break;
      default: (void)carnot::read_demonstration(answer);
    }
  } catch (const carnot::PeerFailure&) {
  }
  return 0;
}
