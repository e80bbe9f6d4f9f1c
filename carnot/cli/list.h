// cli/list.h -- what there is to choose from: the tables behind `carnot list`.
#pragma once

#include <string>

#include "carnot/config/printer.h"

namespace carnot {

std::string list_methods(bool json);
std::string list_environments(bool json);
std::string list_chats(bool json);
/// The three of them.
std::string list_everything(bool json);
std::string list_keys(const FieldTable& table, bool json);

}  // namespace carnot
