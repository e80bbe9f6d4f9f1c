// hf/gguf_keys.h -- keys of one architecture in a GGUF file, read and written. Internal to the room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/gguf/metadata.h"
#include "carnot/core/gguf/writer.h"
#include "carnot/core/hf/gguf_architecture.h"

namespace carnot {

/// Reads keys, named without the architecture before them, and collects what is wrong.
class GgufKeyReader {
 public:
  GgufKeyReader(const GgufFile& file, const std::string& name, const GgufArchitecture& row)
      : metadata_(file, name), row_(&row) {}

  GgufMetadata& metadata() { return metadata_; }
  const GgufArchitecture& row() const { return *row_; }
  std::string key(std::string_view ending) const { return std::string(row_->name).append(".").append(ending); }

  void require(std::string_view ending) { metadata_.require(key(ending)); }
  void problem(std::string_view ending, const std::string& what) { metadata_.problem(key(ending), what); }
  int count(std::string_view ending, int otherwise) {
    const auto value = metadata_.integer(key(ending));
    if (!value) return otherwise;
    if (*value >= 0 && *value <= std::numeric_limits<int>::max()) return static_cast<int>(*value);
    problem(ending, "expected an integer of at least 0, got " + std::to_string(*value));
    return otherwise;
  }
  double number(std::string_view ending, double otherwise) { return metadata_.number(key(ending)).value_or(otherwise); }
  /// Refuses another value; `why` ends the message.
  void only(std::string_view ending, int computed, const std::string& why) {
    if (const int found = count(ending, computed); found != computed)
      problem(ending, "is " + std::to_string(found) + ", expected " + std::to_string(computed) + why);
  }

 private:
  GgufMetadata metadata_;
  const GgufArchitecture* row_;
};

/// Which of so many layers is the last of a turn, where each turn ends with the only layer that is `last`; 0: no layer
/// is; -1: layers take no such turns.
inline int turns_of(const std::vector<bool>& last) {
  const auto first = static_cast<int>(std::find(last.begin(), last.end(), true) - last.begin());
  const int layers = static_cast<int>(last.size());
  if (first == layers) return 0;
  for (int i = 0; i < layers; ++i)
    if (last[static_cast<std::size_t>(i)] != ((i + 1) % (first + 1) == 0)) return -1;
  return first + 1;
}

/// Writes keys, and collects what they cannot say.
class GgufKeyWriter {
 public:
  GgufKeyWriter(const GgufArchitecture& row, std::string name, GgufSettings& settings,
                std::vector<std::string>& problems)
      : row_(&row), name_(std::move(name)), settings_(settings), problems_(problems) {}

  const GgufArchitecture& row() const { return *row_; }
  void set(std::string_view ending, const GgufSetting& value) {
    settings_[std::string(row_->name).append(".").append(ending)] = value;
  }
  void count(std::string_view ending, int value) { set(ending, static_cast<std::uint32_t>(value)); }
  void number(std::string_view ending, double value) { set(ending, static_cast<float>(value)); }
  /// `what` begins with a key of config.json.
  void problem(const std::string& what) { problems_.push_back(name_ + ": config.json: " + what); }

 private:
  const GgufArchitecture* row_;
  std::string name_;
  GgufSettings& settings_;
  std::vector<std::string>& problems_;
};

}  // namespace carnot
