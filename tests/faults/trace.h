// faults/trace.h -- the calls of a run on its folder, as recorded by the preloaded library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace carnot::testing {

struct TracedCall {
  std::string name{};  ///< open look read write fsync close truncate rename exchange link symlink unlink rmdir mkdir
  long result = 0;     ///< negative: it failed
  std::uint64_t inode = 0;
  long offset = 0;  ///< of write and truncate; of open: what it did, see Opened
  std::string path{};
  std::string second{};  ///< the new name, of rename and link
  std::string data{};    ///< of write
};

enum class Opened { Existing = 0, Made = 1, Emptied = 2, MadeWithoutName = 3 };

/// REQUIRES: the library wrote the file. Names of files contain no tab and no line break.
std::vector<TracedCall> read_trace(const std::filesystem::path& path);

/// Whether the call can change what a folder holds, or what of it survives.
bool changes_disk(const TracedCall& call);
/// Whether it takes space.
bool takes_space(const TracedCall& call);

/// "write run/metrics.jsonl", for messages.
std::string text_of(const TracedCall& call, const std::filesystem::path& folder);

}  // namespace carnot::testing
