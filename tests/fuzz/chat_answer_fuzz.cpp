// Answers of an OpenAI-compatible server: read or refused, with counts that are not negative.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/serving/openai/chat_endpoint.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(chat_answer) {
  const auto answer = carnot::parse_chat_answer({reinterpret_cast<const char*>(data), size}, "server");
  if (!answer) return 0;
  CARNOT_CHECK_GE(answer->usage.prompt, 0);
  CARNOT_CHECK_GE(answer->usage.completion, 0);
  return 0;
}
