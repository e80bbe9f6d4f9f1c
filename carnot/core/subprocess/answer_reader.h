// subprocess/answer_reader.h -- the fields of an answer, each checked; all problems are reported at once, with line and
// field.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/subprocess/peer.h"

namespace carnot {

/// A field that the object lacks, or that is null, keeps its value. REQUIRES: the answer outlives the reader.
class AnswerReader {
 public:
  explicit AnswerReader(const PeerAnswer& answer);

  void text(std::string_view key, std::string& value);
  void texts(std::string_view key, std::vector<std::string>& value);
  void text_map(std::string_view key, std::map<std::string, std::string>& value);
  void number(std::string_view key, double& value);  ///< finite
  void numbers(std::string_view key, std::map<std::string, double>& value);
  void count(std::string_view key, int& value, int least, int most);
  void flag(std::string_view key, bool& value);
  /// The place of the word among `words`.
  void word(std::string_view key, std::size_t& value, const std::vector<std::string_view>& words);

  /// Calls `read` with a reader of the object under `key`; without one, not at all.
  template <class Read>
  void object(std::string_view key, Read read) {
    if (const nlohmann::json* found = member(key); found != nullptr && is_object(key, *found))
      read_nested(key, *found, read);
  }
  /// The same for each object of the list under `key`.
  template <class Read>
  void objects(std::string_view key, Read read) {
    for (std::size_t i = 0; i < list_size(key); ++i)
      if (const nlohmann::json& one = list_item(key, i); is_object(item_name(key, i), one))
        read_nested(item_name(key, i), one, read);
  }

  bool has(std::string_view key) const;
  /// The JSON text of a member that is kept as it is; empty if it is missing.
  std::string json(std::string_view key);
  void refuse(std::string_view key, const std::string& expected);

  /// Ends reading. Throws PeerFailure with every problem, fields that no one asked for included.
  void finish();

 private:
  AnswerReader(const nlohmann::json& object, std::string path, std::vector<std::string>& problems);

  template <class Read>
  void read_nested(std::string_view key, const nlohmann::json& object, Read& read) {
    AnswerReader nested(object, path_ + std::string(key) + ".", *problems_);
    read(nested);
    nested.refuse_unknown();
  }
  template <class Value, class Fits>
  void take(std::string_view key, Value& value, const char* expected, Fits fits);
  const nlohmann::json* member(std::string_view key);
  bool is_object(std::string_view key, const nlohmann::json& value);
  std::size_t list_size(std::string_view key);
  const nlohmann::json& list_item(std::string_view key, std::size_t index) const;
  static std::string item_name(std::string_view key, std::size_t index);
  void problem(std::string_view key, const std::string& expected, const nlohmann::json& found);
  void refuse_unknown();

  const nlohmann::json* object_;
  std::string path_{};
  std::string where_{};
  std::vector<std::string> own_problems_{};
  std::vector<std::string>* problems_;
  std::set<std::string, std::less<>> known_{};
};

}  // namespace carnot
