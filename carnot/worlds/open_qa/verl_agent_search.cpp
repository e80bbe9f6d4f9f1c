#include "carnot/worlds/open_qa/verl_agent_search.h"

#include <algorithm>

#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/worlds/search_qa/protocol.h"

namespace carnot {
namespace {

constexpr std::string_view kTurn =
    "\n\nNow it's your turn to respond for the current step.\nYou should first conduct reasoning process. This process "
    "MUST be enclosed within <think> </think> tags. \nAfter completing your reasoning, choose only one of the "
    "following "
    "actions (do not perform both):\n(1) If you find you lack some knowledge, you can call a search engine to get more "
    "external information using format: <search> your query </search>.\n(2) If you have enough knowledge to answer the "
    "question confidently, provide your final answer within <answer> </answer> tags, without detailed illustrations. "
    "For example, <answer>Beijing</answer>.\n";

std::size_t occurrences_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

/// Tags are looked for in `lower`, which is `text` in lower case; `text` itself is taken.
bool take_pair(std::string_view text, std::string_view lower, std::string_view open, std::string_view close,
               std::string& action) {
  const auto begin = lower.find(open);
  if (begin == std::string_view::npos) return false;
  const auto end = lower.find(close, begin + open.size());
  if (end == std::string_view::npos) return false;
  const auto inner = text.substr(begin + open.size(), end - begin - open.size());
  action = std::string(open) + std::string(stripped(inner)) + std::string(close);
  return true;
}

}  // namespace

std::string verl_agent_search_prompt(std::string_view question, const std::vector<SearchStep>& steps,
                                     std::size_t history_length) {
  std::string text =
      "\nYou are an expert agent tasked with answering the given question step-by-step.\nYour question: " +
      std::string(question);
  if (!steps.empty() && history_length > 0) {
    text += "\n\nPrior to this step, you have already taken " + std::to_string(steps.size()) +
            " step(s). Below is the interaction history where <search> </search> wrapped your past search queries and "
            "<information> </information> wrapped the corresponding search results returned by the external search "
            "engine. History:\n";
    for (std::size_t i = steps.size() - std::min(history_length, steps.size()); i < steps.size(); ++i)
      text += "Step " + std::to_string(i + 1) + ":" + steps[i].action + " " + steps[i].information +
              (i + 1 < steps.size() ? "\n\n" : "\n");
  }
  return text + std::string(kTurn);
}

VerlAgentSearchAction read_verl_agent_search(std::string_view response) {
  std::string_view cut = response;
  for (const std::string_view close : {kSearchClose, kAnswerClose}) {
    const auto at = response.find(close);
    if (at == std::string_view::npos) continue;
    cut = response.substr(0, at + close.size());
    break;
  }
  const std::string lower = lower_case(response);
  const std::string_view lower_cut = std::string_view(lower).substr(0, cut.size());
  VerlAgentSearchAction action;
  action.valid = take_pair(cut, lower_cut, kSearchOpen, kSearchClose, action.text) ||
                 take_pair(cut, lower_cut, kAnswerOpen, kAnswerClose, action.text);
  const auto searches = occurrences_of(lower, kSearchOpen), answers = occurrences_of(lower, kAnswerOpen);
  if (searches + answers > 1) action.valid = false;
  return action;
}

std::string verl_agent_information(const RetrievedPassages& passages) {
  std::string text;
  for (std::size_t i = 0; i < passages.size(); ++i)
    text += "Doc " + std::to_string(i + 1) + ": " + std::string(stripped(passages[i].contents)) + "\n";
  return "<information>{\"result\": " + Json(text).dump(-1, ' ', true, Json::error_handler_t::replace) +
         "}</information>";
}

}  // namespace carnot
