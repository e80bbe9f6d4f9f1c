// studies/continuation_file.h -- finished continuations, a line of JSON for each batch of states, kept so that a study
// that was stopped goes on where it was.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/rollout/continuations.h"

namespace carnot {

class ContinuationFile {
 public:
  /// Reads the file, if there is one. The error names the line that is no batch.
  static Result<ContinuationFile> open(std::filesystem::path path);

  /// The batch that was added with this key; null if there is none. A key stands for all that decides the scores.
  const std::vector<Continuations>* find(const std::string& key) const;

  /// Adds the batch and writes the file, whole or not at all.
  Status add(const std::string& key, std::vector<Continuations> batch);

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ContinuationFile(std::filesystem::path path) : path_(std::move(path)) {}
  Status read_line(std::string_view line, const std::string& where);

  std::filesystem::path path_;
  std::string text_{};
  std::map<std::string, std::vector<Continuations>> batches_{};
};

}  // namespace carnot
