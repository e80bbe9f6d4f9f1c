#include "carnot/core/env/replay.h"

#include <bit>

#include "carnot/core/env/environment_boundary.h"

namespace carnot {
namespace {

std::uint64_t mixed(std::uint64_t key, const Opening& prompt) {
  key = derive_seed(derive_seed(key, prompt.system), prompt.user);
  for (const Message& message : prompt.history) key = derive_seed(derive_seed(key, message.role), message.content);
  return derive_seed(key, prompt.assistant_prefix);
}

}  // namespace

std::uint64_t key_of(const Reply& reply) {
  std::uint64_t key = derive_seed(static_cast<std::uint64_t>(reply.form), reply.text, reply.done ? 1 : 0);
  for (const ToolMessage& result : reply.results) key = derive_seed(key, result.text);
  key = derive_seed(key, "reward", std::bit_cast<std::uint64_t>(reply.reward));
  return reply.form == ReplyForm::FreshPrompt ? mixed(key, reply.prompt) : key;
}

std::unique_ptr<Environment> replay(const std::function<std::unique_ptr<Environment>()>& make,
                                    std::span<const PlayedTurn> turns) {
  auto environment = make();
  if (!environment) throw EnvironmentFailure("the factory made no environment");
  environment->open();
  for (std::size_t k = 0; k < turns.size(); ++k) {
    const Reply reply = environment->step(turns[k].response);
    check_reply(reply);
    if (key_of(reply) != turns[k].reply_key)
      throw EnvironmentFailure("played again, turn " + std::to_string(k) +
                               " is answered otherwise: this environment cannot be replayed");
  }
  return environment;
}

}  // namespace carnot
