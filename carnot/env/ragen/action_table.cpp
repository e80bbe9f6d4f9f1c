#include "carnot/env/ragen/action_table.h"

#include <algorithm>

namespace carnot {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r\f\v";
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string lower_case(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), lower);
  return small;
}

std::optional<int> find_action(std::span<const std::string_view> names, std::string_view text) {
  const std::string_view wanted = stripped(text);
  const auto same = [](char a, char b) { return lower(a) == lower(b); };
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::equal(names[i].begin(), names[i].end(), wanted.begin(), wanted.end(), same)) return static_cast<int>(i);
  return std::nullopt;
}

}  // namespace carnot
