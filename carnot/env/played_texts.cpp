#include "carnot/env/played_texts.h"

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

}  // namespace carnot
