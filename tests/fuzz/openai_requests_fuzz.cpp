// Any bytes are a request within the bounds of serving/openai/request.h, or problems with a message each.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/serving/openai/answer.h"
#include "carnot/serving/openai/request.h"
#include "tests/fuzz/target.h"

namespace {

void check(const carnot::ReadRequest& read, bool chat) {
  if (const auto* problems = std::get_if<std::vector<carnot::FieldProblem>>(&read)) {
    CARNOT_CHECK(!problems->empty(), "refused without a problem");
    for (const carnot::FieldProblem& problem : *problems) CARNOT_CHECK(!problem.message.empty(), problem.field);
    CARNOT_CHECK(!carnot::error_answer(*problems).empty(), "an error without a message");
    return;
  }
  const auto& request = std::get<carnot::OpenAiRequest>(read);
  CARNOT_CHECK_EQ(request.chat, chat);
  const auto prompts = chat ? std::size_t{1} : request.prompts.size();
  CARNOT_CHECK(prompts >= 1 && prompts * static_cast<std::size_t>(request.samples) <= carnot::kMostChoices, "texts");
  CARNOT_CHECK(request.samples >= 1 && request.max_tokens.value_or(1) >= 1, "counts");
  CARNOT_CHECK(request.temperature.value_or(0) >= 0 && request.top_p.value_or(1) > 0, "sampling");
  CARNOT_CHECK(request.likeliest.value_or(0) <= carnot::kMostLikeliest, "log-probabilities");
  for (const std::string& stop : request.stop) CARNOT_CHECK(!stop.empty(), "an empty stop string");
  CARNOT_CHECK(!chat || (!request.messages.empty() && request.messages.back().role != "assistant"), "messages");
  for (const carnot::Message& message : request.messages)
    CARNOT_CHECK(
        message.role == "system" || message.role == "user" || message.role == "assistant" || message.role == "tool",
        message.role);
}

}  // namespace

CARNOT_FUZZ_TARGET(openai_requests) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(carnot::read_chat_request(text), true);
  check(carnot::read_completion_request(text), false);
  return 0;
}
