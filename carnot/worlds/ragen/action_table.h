// worlds/ragen/action_table.h -- named actions ("Up", "Left") as models write them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace carnot {

/// The place of `text` in `names`, whatever its case and surrounding blanks.
std::optional<int> find_action(std::span<const std::string_view> names, std::string_view text);

}  // namespace carnot
