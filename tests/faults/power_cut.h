// faults/power_cut.h -- what a disk may hold after a power cut: everything that was synced, and any part of the rest.
//
// The model is harsher than the usual file systems. A file's data certainly survives once the file is synced, a name
// once its folder is: a new file in an unsynced folder is lost even if the file itself was synced. What was not synced
// is lost or kept piece by piece: pages of 4096 bytes of a write, single entries of a folder, in any combination. A
// rename within a folder is one change.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "trace.h"

namespace carnot::testing {

enum class Unsynced {
  Lost,       ///< nothing of it survives
  NamesKept,  ///< names survive without their data: empty files
  Mixed,      ///< a coin for every page and entry
};

struct PowerCut {
  std::size_t calls = 0;  ///< that the run had made
  Unsynced unsynced = Unsynced::Lost;
  std::uint64_t seed = 0;  ///< of Mixed
};

/// Path below the folder to content; folders end in '/'.
using DiskContent = std::map<std::string, std::string>;

/// The content of `folder` after the cut. REQUIRES: it was empty, and its own name on the disk, when the calls began.
DiskContent disk_after(std::span<const TracedCall> calls, const std::filesystem::path& folder, const PowerCut& cut);

/// Puts the content into an empty folder.
void write_disk(const DiskContent& content, const std::filesystem::path& folder);

}  // namespace carnot::testing
