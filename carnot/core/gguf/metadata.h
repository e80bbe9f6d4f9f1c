// gguf/metadata.h -- a GGUF file's keys by what they should hold; remembers everything that is wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/gguf/file.h"

namespace carnot {

/// Functions that read give nothing if the key is missing, and nothing and a problem where it holds something else.
class GgufMetadata {
 public:
  /// `name` precedes each problem. `file` must outlive this.
  GgufMetadata(const GgufFile& file, std::string name) : file_(&file), name_(std::move(name)) {}

  const GgufFile& file() const { return *file_; }
  const std::string& name() const { return name_; }
  bool has(std::string_view key) const { return file_->values.contains(key); }

  std::optional<std::int64_t> integer(std::string_view key);
  /// A float32 as the shortest decimal that is rounded to it: 1e-5, not 9.999999747378752e-6.
  std::optional<double> number(std::string_view key);
  std::optional<bool> flag(std::string_view key);
  /// Valid UTF-8.
  std::optional<std::string> text(std::string_view key);

  // Of at most as many elements as there are token ids.
  std::optional<std::vector<std::string_view>> texts(std::string_view key);  ///< valid UTF-8, each
  std::optional<std::vector<std::int64_t>> integers(std::string_view key);
  std::optional<std::vector<double>> numbers(std::string_view key);
  std::optional<std::vector<bool>> flags(std::string_view key);

  /// A problem where the key is missing.
  void require(std::string_view key);
  void problem(std::string_view key, const std::string& what);
  bool any_problems() const { return !problems_.empty(); }
  /// The first problems, a line each. REQUIRES: any.
  Error error() const { return join_errors(problems_); }

 private:
  const GgufValue* find(std::string_view key) const;
  const GgufValue* find_array(std::string_view key);

  const GgufFile* file_;
  std::string name_;
  std::vector<std::string> problems_{};
};

}  // namespace carnot
