// worlds/dataset/judge_cache.h -- answers of a judge on disk, so that no question is paid for twice.
//
// One small file for each, FOLDER/ab/cdef....json, written under another name and renamed: processes may share the
// folder, and one that is killed leaves nothing half-written. A file that cannot be read counts as absent.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

class JudgeCache {
 public:
  /// Makes the folder, and checks that files can be written there.
  static Result<JudgeCache> open(const std::filesystem::path& folder);

  /// The answer that was stored for `request`, the whole of it: address, model, messages, options. Any thread.
  std::optional<std::string> find(const std::string& request) const;

  /// The error says why it could not be written; the answer is then merely not kept. Any thread.
  Status store(const std::string& request, const std::string& answer) const;

 private:
  explicit JudgeCache(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path file_of(const std::string& request) const;

  std::filesystem::path folder_;
};

}  // namespace carnot
