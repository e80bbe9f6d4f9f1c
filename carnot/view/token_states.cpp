#include "carnot/view/token_states.h"

#include <limits>

#include "carnot/core/base/json.h"

namespace carnot {

TokenStates states_in_row(std::string_view row, std::size_t tokens) {
  // Most rows have none, and are not parsed again.
  if (row.find("\"clip_state\"") == std::string_view::npos) return {};
  const auto json = parse_json(row, "row").value();
  const auto list = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_array() && found->size() == tokens ? *found : Json::array();
  };
  TokenStates states;
  for (const auto& value : list("ratio"))
    states.ratio.push_back(value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
  for (const auto& value : list("clip_state"))
    states.clip_state.push_back(value.is_string() ? value.get<std::string>() : std::string());
  return states.ratio.size() == states.clip_state.size() ? states : TokenStates{};
}

}  // namespace carnot
