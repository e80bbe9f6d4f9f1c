#include "carnot/core/text/added_tokens.h"

#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string_view before = text.substr(0, begin);
  const std::string_view after = text.substr(end);
  const auto is_word = [](std::string_view character) {
    return is_word_character(first_character(character).code_point);
  };
  return (before.empty() || !is_word(before.substr(last_character_begin(before)))) &&
         (after.empty() || !is_word(after));
}

bool overlaps(std::span<const TextRange> ranges, std::size_t begin, std::size_t end) {
  const auto first =
      std::partition_point(ranges.begin(), ranges.end(), [&](const TextRange& range) { return range.end <= begin; });
  return first != ranges.end() && first->begin < end;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens, Blank blank)
    : tokens_(std::move(tokens)), blank_(blank) {
  std::sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return a.content.size() != b.content.size() ? a.content.size() > b.content.size() : a.id < b.id;
  });
  for (std::uint32_t i = 0; i < tokens_.size(); ++i)
    by_first_byte_[static_cast<std::uint8_t>(tokens_[i].content[0])].push_back(i);
}

const AddedToken* AddedTokenFinder::longest_at(std::string_view text, std::size_t at,
                                               std::span<const TextRange> contents) const {
  const std::string_view rest = text.substr(at);
  for (const std::uint32_t i : by_first_byte_[static_cast<std::uint8_t>(rest[0])]) {
    const AddedToken& token = tokens_[i];
    if (!rest.starts_with(token.content)) continue;
    if (!token.special || !overlaps(contents, at, at + token.content.size())) return &token;
  }
  return nullptr;
}

bool AddedTokenFinder::is_taken(char32_t code_point) const {
  return is_white_space(code_point) && (code_point != ' ' || blank_ == Blank::WhiteSpace);
}

std::size_t AddedTokenFinder::skip_blanks_back(std::string_view text, std::size_t begin) const {
  while (begin > 0) {
    const std::size_t previous = last_character_begin(text.substr(0, begin));
    if (!is_taken(first_character(text.substr(previous)).code_point)) break;
    begin = previous;
  }
  return begin;
}

std::size_t AddedTokenFinder::skip_blanks(std::string_view text, std::size_t end) const {
  while (end < text.size()) {
    const Utf8Character character = first_character(text.substr(end));
    if (!is_taken(character.code_point)) break;
    end += static_cast<std::size_t>(character.length);
  }
  return end;
}

bool AddedTokenFinder::find(std::string_view text, std::size_t from, std::span<const TextRange> contents,
                            Match& match) const {
  const AddedToken* token = nullptr;
  while (from < text.size() && !(token = longest_at(text, from, contents))) ++from;
  if (!token) return false;
  const std::size_t end = from + token->content.size();
  match = {.token = token, .begin = from, .end = end, .searched = end};
  if (token->single_word && !stands_alone(text, from, end)) match.token = nullptr;
  if (token->lstrip) match.begin = skip_blanks_back(text, from);
  if (token->rstrip) match.end = skip_blanks(text, end);
  return true;
}

}  // namespace carnot
