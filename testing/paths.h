// testing/paths.h -- where tests find files: the repository, the recorded data beside it, the build folder.
//
// Compiled in one source, so that no other test's object depends on where the repository is and the compiler cache
// serves every clone.
#pragma once

#include <string>
#include <string_view>

namespace carnot {

// Each returns the folder's absolute path, a slash and `relative`.
std::string source_path(std::string_view relative);
std::string data_path(std::string_view relative);   // ../shared/data, or what -DCARNOT_DATA_DIR names
std::string build_path(std::string_view relative);

}  // namespace carnot
