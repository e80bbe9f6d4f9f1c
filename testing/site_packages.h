// testing/site_packages.h -- where the Python packages of the project's virtual environment are.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "testing/paths.h"

namespace carnot::testing {

inline std::vector<std::string> site_packages() {
  std::vector<std::string> folders;
  std::error_code ignored;
  for (const auto& python : std::filesystem::directory_iterator(source_path(".venv/lib"), ignored))
    folders.push_back((python.path() / "site-packages").string());
  return folders;
}

}  // namespace carnot::testing
