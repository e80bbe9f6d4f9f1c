// testing/paths.h -- where tests find files: the repository, its recorded results, published data, the build folder.
//
// Compiled in one source, so that no other object depends on the repository's path and the compiler cache serves every
// clone.
#pragma once

#include <string>
#include <string_view>

namespace carnot {

// Each returns the folder's absolute path, a slash and `relative`.
std::string source_path(std::string_view relative);
std::string recorded_path(std::string_view relative);  // tests/recorded: what other implementations computed
std::string build_path(std::string_view relative);

/// The folder with published data that is not ours and not in the repository (docs/data.md): the environment variable
/// CARNOT_DATA, or else what -DCARNOT_DATA_DIR named. Empty if neither is set: tests of it are skipped with
/// Missing::PublishedData.
const std::string& published_data();
/// A file there. REQUIRES: published_data() is not empty.
std::string published_path(std::string_view relative);

}  // namespace carnot
