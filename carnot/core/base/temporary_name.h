// base/temporary_name.h -- names for files and folders that are still being written.
//
// A file or folder is filled under an unguessable name and then renamed. It is always created exclusively, never
// opened if it exists, so that a link planted in a shared folder is not followed. All names have one form
// (".carnot-0123456789abcdef.tmp"), so that leftovers of a killed process can be recognised and removed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/result.h"

namespace carnot {

struct TemporaryFile {
  std::filesystem::path path{};
  Descriptor descriptor{};  ///< open for writing
};

/// An empty file in `folder`, with the permissions that the umask allows.
Result<TemporaryFile> make_temporary_file(const std::filesystem::path& folder);

/// An empty folder in `parent`, which must exist.
Result<std::filesystem::path> make_temporary_folder(const std::filesystem::path& parent);

/// Lower-case digits that no one can guess.
std::string random_hexadecimal(std::size_t digits);

/// A name for something that is about to be moved aside.
Result<std::string> temporary_name();

/// Whether `name` has the form that temporary_name() returns.
bool is_temporary_name(std::string_view name);

/// Removes every file and folder in `folder` that has a temporary name; a missing folder is not an error. REQUIRES: no
/// other process is writing to `folder`.
Status remove_temporaries(const std::filesystem::path& folder);

}  // namespace carnot
