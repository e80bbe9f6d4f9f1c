// Whatever a policy says, an environment answers with finite numbers and with text that stays text in the
// conversation. The first byte chooses the environment; lines are the responses.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "carnot/core/env/environment.h"
#include "carnot/core/text/chat_families.h"
#include "testing/small_tokenizer.h"
#include "tests/fuzz/target.h"

namespace {

using carnot::testing::small_tokenizer;

std::vector<std::unique_ptr<carnot::EnvironmentFactory>> prepared_factories() {
  std::vector<std::unique_ptr<carnot::EnvironmentFactory>> prepared;
  for (const auto& entry : carnot::environments()) {
    if (entry.name == "agent") continue;  // waits for a program's request
    auto factory = entry.make();
    // Environments that need a data set are left out.
    if (factory->prepare(0)) prepared.push_back(std::move(factory));
  }
  return prepared;
}

void check_reply(const carnot::Reply& reply) {
  CARNOT_CHECK(std::isfinite(reply.reward), "a reward is a number");
  CARNOT_CHECK(std::isfinite(reply.penalty) && reply.penalty <= 0, "a penalty is not positive");
  for (const auto& [name, value] : reply.measures) CARNOT_CHECK(std::isfinite(value), name);
}

/// Every control token is the format's: one closes the response, two enclose the message, one opens the next.
void check_rendering(const std::string& text) {
  static const auto chat = carnot::make_chat_family("chatml", small_tokenizer()).value();
  const carnot::Message message{.role = "user", .content = text};
  int control = 0;
  for (const carnot::TokenId id : chat->render_reply({&message, 1}, "", false).tokens)
    control += small_tokenizer().is_control(id);
  CARNOT_CHECK_EQ(control, 4);
}

}  // namespace

CARNOT_FUZZ_TARGET(environment_replies) {
  static const auto factories = prepared_factories();
  if (size == 0) return 0;
  const auto environment = factories[data[0] % factories.size()]->make_instance(1);
  environment->open();
  const std::string_view said(reinterpret_cast<const char*>(data + 1), size - 1);
  check_rendering(std::string(said));
  for (const std::string_view response : carnot::split_lines(said)) {
    const carnot::Reply reply = environment->step(response);
    check_reply(reply);
    check_rendering(reply.text);
    if (reply.done) break;
  }
  return 0;
}
