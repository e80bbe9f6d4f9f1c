#include "carnot/worlds/search_qa/protocol.h"

#include <algorithm>
#include <array>

#include "carnot/core/base/strings.h"
#include "carnot/worlds/reward/answer_metrics.h"

namespace carnot {
namespace {

constexpr std::array<std::string_view, 4> kTags = {"think", "search", "result", "answer"};
constexpr std::string_view kBoxed = "\\boxed{";

struct Tag {
  std::string_view name;
  bool closes = false;
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct Pair {
  std::string_view name;
  std::string_view content;
};

std::vector<Tag> tags_in(std::string_view text) {
  std::vector<Tag> tags;
  for (auto at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const bool closes = text.substr(at + 1, 1) == "/";
    const auto name_at = at + (closes ? 2 : 1);
    for (auto name : kTags) {
      const auto end = name_at + name.size() + 1;
      if (text.substr(name_at, name.size()) == name && text.substr(end - 1, 1) == ">")
        tags.push_back({.name = name, .closes = closes, .begin = at, .end = end});
    }
  }
  return tags;
}

std::string closing(std::string_view name) { return "</" + std::string(name) + ">"; }
std::string opening(std::string_view name) { return "<" + std::string(name) + ">"; }

// Fills `pairs`; says which tag has no partner.
std::string find_pairs(std::string_view text, std::vector<Pair>& pairs) {
  const auto tags = tags_in(text);
  for (std::size_t i = 0; i < tags.size(); i += 2) {
    if (tags[i].closes) return closing(tags[i].name) + " without " + opening(tags[i].name);
    if (i + 1 == tags.size() || !tags[i + 1].closes || tags[i + 1].name != tags[i].name)
      return opening(tags[i].name) + " is not closed before the next tag";
    pairs.push_back({.name = tags[i].name, .content = text.substr(tags[i].end, tags[i + 1].begin - tags[i].end)});
  }
  return "";
}

}  // namespace

std::vector<std::string> search_protocol_tokens() {
  std::vector<std::string> tokens;
  for (auto name : kTags) {
    tokens.push_back(opening(name));
    tokens.push_back(closing(name));
  }
  tokens.emplace_back(kBoxed);
  return tokens;
}

SearchResponse parse_search_response(std::string_view response) {
  response = trim(response);
  if (response.ends_with(kSearchClose)) {
    response.remove_suffix(kSearchClose.size());
    const auto open = response.rfind(kSearchOpen);
    if (open == std::string_view::npos) return {};
    return {.action = SearchAction::Search, .text = trim(response.substr(open + kSearchOpen.size()))};
  }
  const auto close = response.rfind(kAnswerClose);
  const auto open = response.substr(0, close).rfind(kAnswerOpen);
  if (close == std::string_view::npos || open == std::string_view::npos) return {};
  const auto begin = open + kAnswerOpen.size();
  return {.action = SearchAction::Answer, .text = trim(response.substr(begin, close - begin))};
}

std::string search_result(std::string_view passages) { return " <result>\n" + std::string(passages) + "\n</result>"; }

std::string format_problem(std::string_view message) {
  std::vector<Pair> pairs;
  if (std::string problem = find_pairs(message, pairs); !problem.empty()) return problem;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const bool result_next = i + 1 < pairs.size() && pairs[i + 1].name == "result";
    if (pairs[i].name == "search" && !result_next) return "a search without a result";
    if (pairs[i].name != "search" && result_next) return "a result without a search";
  }
  if (!pairs.empty() && pairs.front().name == "result") return "a result without a search";
  if (std::ranges::count(pairs, "think", &Pair::name) == 0) return "no think pair";
  const auto answers = std::ranges::count(pairs, "answer", &Pair::name);
  if (answers != 1) return "expected one answer pair, got " + std::to_string(answers);
  if (std::ranges::find(pairs, "answer", &Pair::name)->content.find(kBoxed) == std::string_view::npos)
    return "no \\boxed{ in the answer";
  return "";
}

}  // namespace carnot
