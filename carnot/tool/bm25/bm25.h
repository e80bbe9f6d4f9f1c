// tool/bm25/bm25.h -- an in-memory full-text index ranked by BM25 as Lucene computes it.
//
//   score(q, d) = sum over words w of q:  idf(w) * f / (f + k1 * (1 - b + b * |d| / mean length))
//   idf(w) = ln(1 + (N - n + 0.5) / (n + 0.5))
//
// f counts w in d, n counts the documents that hold w; a word that the query repeats counts again. (Robertson and
// Zaragoza 2009, without the constant factor k1 + 1, which changes no ranking.)
//
// Immutable once built; search() may be called from any number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "carnot/base/fields.h"
#include "carnot/tool/bm25/analyzer.h"

namespace carnot {

struct Bm25Options {
  double k1 = 0.9;
  double b = 0.4;
  bool lucene_lengths = false;  ///< round document lengths to one byte, as Lucene stores them

  void fields(FieldVisitor& visit);
};

struct SearchHit {
  int document = 0;  ///< position in the texts that the index was built from
  double score = 0;  ///< > 0

  bool operator==(const SearchHit&) const = default;
};

/// The length Lucene reads back after storing `length` in one byte: exact up to 40, then four significant bits of
/// what exceeds 24 (SmallFloat.intToByte4).
int lucene_length(int length);

class Bm25Index {
 public:
  /// An index of nothing.
  Bm25Index() = default;

  Bm25Index(std::span<const std::string> documents, const Bm25Options& options, Analyzer analyzer = alphanumeric_words);

  /// The `k` best documents that share a word with the query, best first; equal scores in order of document.
  std::vector<SearchHit> search(std::string_view query, int k) const;

  int num_documents() const { return static_cast<int>(length_norm_.size()); }

 private:
  struct Posting {
    std::int32_t document = 0;
    std::int32_t count = 0;
  };
  struct QueryWord {
    std::size_t word = 0;
    int count = 0;
  };

  std::size_t word_number(std::string word);
  std::vector<QueryWord> known_words(std::string_view query) const;

  Analyzer analyzer_;
  std::unordered_map<std::string, std::size_t> words_;
  std::vector<std::vector<Posting>> postings_;  // by word; sorted by document
  std::vector<double> idf_;                     // by word
  std::vector<double> length_norm_;             // by document: k1 * (1 - b + b * length / mean length)
};

}  // namespace carnot
