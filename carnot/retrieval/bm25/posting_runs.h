// retrieval/bm25/posting_runs.h -- the words of passages, collected in memory, written as sorted runs, merged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

struct WordPosting {
  std::uint32_t document = 0;
  std::uint32_t count = 0;
};

/// A word with the number of its occurrences.
struct CountedWord {
  std::string word{};
  std::uint32_t count = 0;
};

/// The different words of a text, sorted.
std::vector<CountedWord> count_words(std::vector<std::string> words);

class PostingCollector {
 public:
  /// REQUIRES: documents come in their order, each once.
  void add(std::uint32_t document, const std::vector<CountedWord>& words);

  std::size_t bytes() const { return bytes_; }  ///< of memory, about
  bool empty() const { return words_.empty(); }

  /// Writes all words in the order of their bytes, and forgets them. A file that is there is replaced.
  Status write_run(const std::filesystem::path& file);

 private:
  struct List {
    std::string bytes{};  // for each document: its difference to the one before, and the count, as varints
    std::uint32_t last = 0;
    std::uint32_t documents = 0;
  };
  std::unordered_map<std::string, List> words_{};
  std::size_t bytes_ = 0;
};

/// Gets a word with all its postings.
using OnWord = std::function<Status(std::string_view word, const std::vector<WordPosting>& postings)>;

/// Calls `on_word` for each word of the runs, in the order of their bytes. The documents of a run come after those of
/// the runs before it. The error names a run that cannot be read.
Status merge_runs(const std::vector<std::filesystem::path>& runs, const OnWord& on_word);

}  // namespace carnot
