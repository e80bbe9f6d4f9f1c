#include "carnot/core/text/span_parser.h"

#include <algorithm>
#include <optional>

namespace carnot {
namespace {

/// One tag in the text of a response.
struct Tag {
  std::string_view text{};
  std::size_t begin = 0;
  std::size_t end() const { return begin + text.size(); }
};

std::string opening(const std::string& name) { return "<" + name + ">"; }
std::string closing(const std::string& name) { return "</" + name + ">"; }

/// Every tag of the grammar.
std::vector<std::string> tags_of(const SpanGrammar& grammar) {
  std::vector<std::string> tags;
  auto names = grammar.action_tags;
  if (!grammar.think_tag.empty()) names.push_back(grammar.think_tag);
  for (const std::string& name : names) {
    tags.push_back(opening(name));
    tags.push_back(closing(name));
  }
  return tags;
}

/// The occurrences of `tags` in `text`, in order. No tag is the beginning of another: each ends in its only '>'.
std::vector<Tag> find_tags(std::string_view text, const std::vector<std::string>& tags) {
  std::vector<Tag> found;
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    for (const std::string& tag : tags) {
      if (text.substr(at).starts_with(tag)) {
        found.push_back({.text = tag, .begin = at});
        break;
      }
    }
  }
  return found;
}

/// The tags that a parsed response with this action has, and no others, in this order.
std::vector<std::string> expected_tags(const SpanGrammar& grammar, const std::string& action) {
  std::vector<std::string> expected;
  if (!grammar.think_tag.empty() && !grammar.think_opened_by_prompt) expected.push_back(opening(grammar.think_tag));
  if (!grammar.think_tag.empty()) expected.push_back(closing(grammar.think_tag));
  expected.push_back(opening(action));
  expected.push_back(closing(action));
  return expected;
}

struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Bytes of the action, where the response parses.
std::optional<ByteRange> find_action(std::string_view text, const SpanGrammar& grammar) {
  const std::vector<std::string> tags = tags_of(grammar);
  const std::vector<Tag> found = find_tags(text, tags);
  for (const std::string& action : grammar.action_tags) {
    const auto expected = expected_tags(grammar, action);
    const auto same = [](const Tag& tag, const std::string& name) { return tag.text == name; };
    if (!std::equal(found.begin(), found.end(), expected.begin(), expected.end(), same)) continue;
    const Tag& open = *(found.end() - 2);
    const Tag& close = found.back();
    if (grammar.tags_are_action) return ByteRange{open.begin, close.end()};
    return ByteRange{open.end(), close.begin};
  }
  return {};
}

}  // namespace

ParsedResponse parse_response(const Tokenizer& tokenizer, std::span<const TokenId> response,
                              const SpanGrammar& grammar) {
  ParsedResponse parsed;
  const std::string text = tokenizer.decode(response);
  const auto action = find_action(text, grammar);
  parsed.parsed = action.has_value();
  std::size_t offset = 0;
  for (const TokenId id : response) {
    const bool acts = action && offset >= action->begin && offset < action->end;
    extend_spans(parsed.spans, acts ? SpanKind::Action : SpanKind::Think, 1);
    offset += tokenizer.bytes_of(id).size();
  }
  return parsed;
}

int tokens_of_thought(const Tokenizer& tokenizer, std::span<const TokenId> response, const std::string& think_tag) {
  if (think_tag.empty()) return 0;
  const std::string closing = "</" + think_tag + ">";
  std::string text;
  for (std::size_t t = 0; t + 1 < response.size(); ++t) {
    text += tokenizer.bytes_of(response[t]);
    if (text.find(closing) != std::string::npos) return static_cast<int>(t) + 1;
  }
  return 0;
}

}  // namespace carnot
