#include "carnot/core/env/played_texts.h"

#include <algorithm>
#include <iterator>

namespace carnot {

std::vector<std::string> played_texts(Environment& environment, ScriptedAgent& agent) {
  std::vector<std::string> texts;
  for (Reply reply; !reply.done;) {
    texts.push_back(agent.respond(shown_text(reply)).text);
    reply = environment.step(texts.back());
    texts.push_back(shown_text(reply));
  }
  return texts;
}

std::vector<std::string> training_texts(const EnvironmentFactory& factory) {
  constexpr std::int64_t kEpisodes = 32;
  std::vector<std::string> texts;
  for (std::int64_t index = 0; index < kEpisodes; ++index) {
    const auto environment = factory.make(Split::Train, index);
    const Opening opening = environment->open();
    texts.push_back(opening.system);
    texts.push_back(opening.user);
    const auto agent = factory.script(*environment, 1, RandomStream(static_cast<std::uint64_t>(index)));
    std::ranges::move(played_texts(*environment, *agent), std::back_inserter(texts));
  }
  return texts;
}

}  // namespace carnot
