#include "carnot/worlds/ragen/action_table.h"

#include <algorithm>

#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::optional<int> find_action(std::span<const std::string_view> names, std::string_view text) {
  const std::string_view wanted = trim(text);
  const auto same = [](char a, char b) { return lower(a) == lower(b); };
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::equal(names[i].begin(), names[i].end(), wanted.begin(), wanted.end(), same)) return static_cast<int>(i);
  return std::nullopt;
}

}  // namespace carnot
