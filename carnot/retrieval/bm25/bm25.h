// retrieval/bm25/bm25.h -- an in-memory full-text index ranked by BM25 as Lucene computes it.
//
//   score(q, d) = sum over words w of q:  idf(w) * f / (f + k1 * (1 - b + b * |d| / mean length))
//   idf(w) = ln(1 + (N - n + 0.5) / (n + 0.5))
//
// f counts w in d, n counts the documents that hold w; a word that the query repeats counts again. (Robertson and
// Zaragoza 2009, without the constant factor k1 + 1, which changes no ranking.)
//
// In single precision it is Lucene's own arithmetic (BM25Similarity, 9.x), whose scores it equals to the bit:
//
//   score(q, d) = sum over distinct words w of q:  W - W / (1 + f * inverse(d)),   W = (times w is in q) * idf(w)
//
// Immutable once built; search() may be called from any number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/retrieval/bm25/analyzer.h"

namespace carnot {

/// Lucene keeps the length of a document in one byte (SmallFloat.intToByte4): the length that each byte means, exact up
/// to 40, then four significant bits of what exceeds 24. They grow with the byte.
const std::array<int, 256>& lucene_lengths();

/// The byte of the longest length that is not above `length`. REQUIRES: length >= 0.
std::uint8_t lucene_length_code(int length);

/// The length that Lucene reads back after storing `length` in one byte.
inline int lucene_length(int length) { return lucene_lengths()[lucene_length_code(length)]; }

/// For each such byte, 1 / (k1 * (1 - b + b * length / mean length)), in Lucene's single precision.
std::array<float, 256> lucene_inverse_norms(float k1, float b, double mean_length);

enum class Bm25Arithmetic : std::uint8_t {
  Double,
  Lucene,  ///< terms in single precision, their sum in double, rounded to single; lengths of one byte
};

struct Bm25Options {
  double k1 = 0.9;
  double b = 0.4;
  bool lucene_lengths = false;                         ///< round document lengths to one byte, as Lucene stores them
  Bm25Arithmetic arithmetic = Bm25Arithmetic::Double;  ///< no recipe key: code that repeats published ranks sets it

  void fields(FieldVisitor& visit);
};

struct SearchHit {
  int document = 0;  ///< position in the texts that the index was built from
  double score = 0;  ///< > 0

  bool operator==(const SearchHit&) const = default;
};

class Bm25Index {
 public:
  /// An index of nothing.
  Bm25Index() = default;

  Bm25Index(std::span<const std::string> documents, const Bm25Options& options, Analyzer analyzer = alphanumeric_words);

  /// The `k` best documents that share a word with the query, best first; equal scores in order of document.
  std::vector<SearchHit> search(std::string_view query, int k) const;

  int num_documents() const { return num_documents_; }

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
  void measure_documents(std::span<const int> lengths, double total);
  void add_scores(std::span<const QueryWord> words, std::vector<double>& scores) const;
  void add_lucene_scores(std::span<const QueryWord> words, std::vector<double>& scores) const;

  Bm25Options options_;
  Analyzer analyzer_;
  std::unordered_map<std::string, std::size_t> words_;
  std::vector<std::vector<Posting>> postings_;  // by word; sorted by document
  std::vector<double> idf_;                     // by word
  std::vector<double> length_norm_;  // by document: k1 * (1 - b + b * length / mean length); empty for Lucene
  std::vector<float> inverse_norm_;  // by document: 1 over it, for Lucene
  int num_documents_ = 0;
};

}  // namespace carnot
