// cli/list.h -- what `carnot list` can print.
#pragma once

#include <filesystem>
#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

struct ListRequest {
  bool json = false;
  std::filesystem::path folder = "runs";  ///< of runs
};

struct ListTopic {
  std::string name{};
  Result<std::string> (*print)(const ListRequest& request) = nullptr;  ///< null: this build leaves it out
};

}  // namespace carnot
