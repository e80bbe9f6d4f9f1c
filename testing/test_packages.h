// testing/test_packages.h -- the interpreters with packages that only tests need (tools/install_test_packages.sh).
#pragma once

#include <filesystem>
#include <string>

#include "carnot/core/base/check.h"
#include "testing/paths.h"

namespace carnot::testing {

/// The Python that has the set `name`, as the script names its sets. Throws if it is not installed.
inline std::string python_with(const std::string& name) {
  const std::string python = source_path(".cache/test_packages/" + name + "/bin/python");
  CARNOT_CHECK(std::filesystem::exists(python), "run tools/install_test_packages.sh");
  return python;
}

}  // namespace carnot::testing
