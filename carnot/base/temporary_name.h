// base/temporary_name.h -- names for files and folders that are still being written.
//
// A file or folder is filled under a name that nobody can guess, and then renamed. Such names are made by creating,
// never by opening an existing one, so that a link planted in a shared folder is not followed. They all look alike
// (".carnot-0123456789abcdef.tmp"), so that what a killed process left can be recognised and removed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "carnot/base/descriptor.h"
#include "carnot/base/result.h"

namespace carnot {

struct TemporaryFile {
  std::filesystem::path path{};
  Descriptor descriptor{};  ///< open for writing
};

/// An empty file in `folder`, readable by all whom the umask lets.
Result<TemporaryFile> make_temporary_file(const std::filesystem::path& folder);

/// An empty folder in `parent`, which has to be there.
Result<std::filesystem::path> make_temporary_folder(const std::filesystem::path& parent);

/// A name for what is about to be set aside.
Result<std::string> temporary_name();

/// Whether temporary_name() makes such names.
bool is_temporary_name(std::string_view name);

/// Removes every file and folder in `folder` that has a temporary name; a folder that is not there has none.
/// REQUIRES: nobody else is writing into `folder`.
Status remove_temporaries(const std::filesystem::path& folder);

}  // namespace carnot
