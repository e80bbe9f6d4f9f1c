// run/export_output.h -- where `carnot export` may write: never over what it reads, nor over what it did not write.
//
// A folder that an export wrote holds carnot_export.json, a list of its files. Only such a folder, with no other files
// in it, may be overwritten.
#pragma once

#include <filesystem>

#include "carnot/core/base/result.h"

namespace carnot {

struct ExportPlace {
  std::filesystem::path source{};
  std::filesystem::path base{};  ///< another folder that is read: the weights below adapters. Empty: none
  std::filesystem::path output{};
  bool overwrite = false;
};

/// The folder to make: `output` with links resolved. Refuses an output that holds the source or what it links to, is
/// in it, or would be taken for a checkpoint of its run; one that exists and is not empty unless `overwrite` is set and
/// an export wrote all that is in it.
Result<std::filesystem::path> export_output(const ExportPlace& place);

/// The same for an export that is one file, a GGUF file; one that exists is replaced if `overwrite` is set.
Result<std::filesystem::path> export_output_file(const ExportPlace& place);

/// Lists the files of `folder` in its carnot_export.json.
Status mark_as_export(const std::filesystem::path& folder);

}  // namespace carnot
