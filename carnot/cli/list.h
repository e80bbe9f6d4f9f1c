// cli/list.h -- what `carnot list` can print.
#pragma once

#include <string>

#include "carnot/base/result.h"

namespace carnot {

struct ListTopic {
  std::string name{};
  Result<std::string> (*print)(bool json) = nullptr;
};

}  // namespace carnot
