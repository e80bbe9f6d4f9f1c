#include "carnot/env/action_table.h"

namespace carnot {

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r\f\v";
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::optional<int> find_action(std::span<const std::string_view> names, std::string_view text) {
  const std::string wanted = lower_case(stripped(text));
  for (std::size_t i = 0; i < names.size(); ++i)
    if (lower_case(names[i]) == wanted) return static_cast<int>(i);
  return std::nullopt;
}

}  // namespace carnot
