// env/ragen/action_table.h -- named actions ("Up", "Left") as models write them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace carnot {

/// `text` without blanks, tabs and line breaks at its ends.
std::string_view stripped(std::string_view text);

/// ASCII letters in lower case; other bytes as they are.
std::string lower_case(std::string_view text);

/// The place of `text` in `names`, whatever its case and surrounding blanks.
std::optional<int> find_action(std::span<const std::string_view> names, std::string_view text);

}  // namespace carnot
