#include "carnot/core/env/environment.h"

#include "carnot/core/base/strings.h"
#include "carnot/core/env/game.h"

namespace carnot {

std::unique_ptr<Environment> EnvironmentFactory::make_instance(std::uint64_t seed) const {
  return make(Split::Validation, static_cast<std::int64_t>(seed));
}

Reply step_alone(Environment& environment, const PolicyResponse& response) {
  Reply reply = environment.step(response);
  if (reply.done && reply.unscored) environment.score_group({&reply, 1});
  reply.unscored.reset();
  return reply;
}

std::string shown_text(const Reply& reply) {
  if (reply.form == ReplyForm::FreshPrompt)
    return reply.prompt.user.empty() && !reply.prompt.history.empty() ? reply.prompt.history.back().content
                                                                      : reply.prompt.user;
  if (reply.form != ReplyForm::ToolResult) return reply.text;
  std::vector<std::string> texts;
  for (const ToolMessage& result : reply.results) texts.push_back(result.text);
  return join(texts, "\n");
}

Result<std::unique_ptr<Game>> EnvironmentFactory::make_game(std::uint64_t) const { return std::unique_ptr<Game>(); }

std::unique_ptr<ScriptedAgent> EnvironmentFactory::script(const Environment&, double, RandomStream) const {
  return nullptr;
}

std::unique_ptr<Environment> EnvironmentFactory::make_demonstrated(std::int64_t index, double) const {
  return make(Split::Train, index);
}

}  // namespace carnot
