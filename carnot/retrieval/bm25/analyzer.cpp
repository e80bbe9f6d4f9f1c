#include "carnot/retrieval/bm25/analyzer.h"

namespace carnot {
namespace {

// The lower-case form of a byte that belongs to a word; 0 for one that separates words.
char word_byte(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  const bool part = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) > 127;
  return part ? c : '\0';
}

}  // namespace

std::vector<std::string> alphanumeric_words(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  for (char c : text) {
    const char lower = word_byte(c);
    if (lower != '\0') {
      if (!inside) words.emplace_back();
      words.back() += lower;
    }
    inside = lower != '\0';
  }
  return words;
}

Analyzer analyzer_of(IndexWords words) {
  return words == IndexWords::English ? Analyzer(lucene_english_words) : Analyzer(alphanumeric_words);
}

}  // namespace carnot
