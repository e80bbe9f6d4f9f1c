#include "carnot/worlds/open_qa/protocols.h"

#include <algorithm>
#include <array>
#include <utility>

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

constexpr std::array<std::string_view, 4> kSearchR1Tags = {"think", "search", "information", "answer"};

struct FoundTag {
  std::string_view name{};
  bool closes = false;
  std::size_t begin = std::string_view::npos;
  std::size_t end = 0;
};

/// The first tag from `at` on.
FoundTag next_tag(std::string_view text, std::size_t at) {
  for (at = text.find('<', at); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const bool closes = text.substr(at + 1, 1) == "/";
    const std::string_view rest = text.substr(at + (closes ? 2 : 1));
    for (const std::string_view name : kSearchR1Tags)
      if (rest.starts_with(name) && rest.substr(name.size(), 1) == ">")
        return {.name = name, .closes = closes, .begin = at, .end = at + name.size() + (closes ? 3 : 2)};
  }
  return {};
}

/// What comes between `<name>` and the first `</name>` after it, from `at` on; none: begin is npos.
struct TagPair {
  std::size_t begin = std::string_view::npos;
  std::string_view text{};
};

TagPair first_pair(std::string_view text, const std::string& name) {
  const std::string open = "<" + name + ">", close = "</" + name + ">";
  const auto begin = text.find(open);
  if (begin == std::string_view::npos) return {};
  const auto end = text.find(close, begin + open.size());
  if (end == std::string_view::npos) return {};
  return {.begin = begin, .text = text.substr(begin + open.size(), end - begin - open.size())};
}

}  // namespace

std::string search_r1_prompt(std::string_view question) {
  question = stripped(question);
  return "Answer the given question. You must conduct reasoning inside <think> and </think> first every time you get "
         "new "
         "information. After reasoning, if you find you lack some knowledge, you can call a search engine by <search> "
         "query </search> and it will return the top searched results between <information> and </information>. You "
         "can "
         "search as many times as your want. If you find no further external knowledge needed, you can directly "
         "provide "
         "the answer inside <answer> and </answer>, without detailed illustrations. For example, <answer> Beijing "
         "</answer>. Question: " +
         std::string(question) + (question.ends_with('?') ? "\n" : "?\n");
}

std::string_view search_r1_cut(std::string_view response) {
  for (const std::string_view close : {kSearchClose, kAnswerClose})
    if (const auto at = response.find(close); at != std::string_view::npos)
      return response.substr(0, at + close.size());
  return response;
}

SearchResponse search_r1_action(std::string_view response) {
  const TagPair search = first_pair(response, "search"), answer = first_pair(response, "answer");
  const TagPair& first = std::min(search.begin, answer.begin) == search.begin ? search : answer;
  if (first.begin == std::string_view::npos) return {};
  return {.action = &first == &search ? SearchAction::Search : SearchAction::Answer, .text = stripped(first.text)};
}

std::string search_r1_information(std::string_view passages) {
  return "\n\n<information>" + std::string(stripped(passages)) + "</information>\n\n";
}

std::string_view search_r1_reproach() {
  return "\nMy previous action is invalid. If I want to search, I should put the query between <search> and </search>. "
         "If I want to give the final answer, I should put the answer between <answer> and </answer>. Let me try "
         "again.\n";
}

std::string search_r1_passages(const RetrievedPassages& passages) {
  std::string text;
  for (std::size_t i = 0; i < passages.size(); ++i) {
    const std::string_view contents = passages[i].contents;
    const auto line = std::min(contents.find('\n'), contents.size());
    text += "Doc " + std::to_string(i + 1) + "(Title: " + std::string(contents.substr(0, line)) + ") " +
            std::string(contents.substr(std::min(line + 1, contents.size()))) + "\n";
  }
  return text;
}

TaggedAnswer last_tagged_answer(std::string_view message) {
  TaggedAnswer last;
  for (std::size_t at = 0; at < message.size();) {
    const TagPair pair = first_pair(message.substr(at), "answer");
    if (pair.begin == std::string_view::npos) break;
    last = {.found = true, .text = stripped(pair.text)};
    at = static_cast<std::size_t>(pair.text.data() - message.data()) + pair.text.size() + kAnswerClose.size();
  }
  return last;
}

bool is_search_r1_format(std::string_view message) {
  std::string_view within;  // the pair that is open
  std::string_view before;  // the pair that was closed last
  std::size_t at = 0;
  while (true) {
    const FoundTag tag = next_tag(message, at);
    const auto end = std::min(tag.begin, message.size());
    if (within.empty() && !stripped(message.substr(at, end - at)).empty()) return false;
    if (tag.begin == std::string_view::npos) return within.empty() && before == "answer";
    if (tag.closes) {
      if (tag.name != within) return false;
      before = std::exchange(within, {});
    } else {
      const std::string_view allowed_after = tag.name == "information" ? "search" : "think";
      const bool follows = tag.name == "think" ? before.empty() || before == "information" : before == allowed_after;
      if (!within.empty() || !follows) return false;
      within = tag.name;
    }
    at = tag.end;
  }
}

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

std::string_view arpo_search_prompt() {
  return "You are a helpful assistant that can solve the given question step by step with the help of the wikipedia "
         "search tool. Given a question, you need to first think about the reasoning process in the mind and then "
         "provide the answer. During thinking, you can invoke the wikipedia search tool to search for fact information "
         "about specific topics if needed. The reasoning process and answer are enclosed within <think> </think> and "
         "<answer> </answer> tags respectively, and the search query and result are enclosed within <search> </search> "
         "and <result> </result> tags respectively. For example, <think> This is the reasoning process. </think> "
         "<search> search query here </search> <result> search result here </result> <think> This is the reasoning "
         "process. </think> <answer> The final answer is \\[ \\boxed{answer here} \\] </answer>. In the last part of "
         "the answer, the final exact answer is enclosed within \\boxed{} with latex format.";
}

std::string arpo_passages(const RetrievedPassages& passages) {
  if (passages.empty()) return "Tool(search) returned empty output.";
  std::string text;
  for (std::size_t i = 0; i < passages.size(); ++i) {
    const std::string_view contents = passages[i].contents;
    const auto line = std::min(contents.find('\n'), contents.size());
    text += "Doc " + std::to_string(i + 1) + " (Title: " + std::string(contents.substr(0, line)) + ")\n" +
            std::string(contents.substr(std::min(line + 1, contents.size()))) + "\n\n";
  }
  return std::string(stripped(text));
}

}  // namespace carnot
