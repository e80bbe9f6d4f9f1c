#include "carnot/tool/bm25/bm25.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "carnot/base/check.h"

namespace carnot {

void Bm25Options::fields(FieldVisitor& visit) {
  visit.field("k1", k1, "how slowly repeated words saturate", at_least(0));
  visit.field("b", b, "how much long documents are discounted", between(0, 1));
  visit.field("lucene_lengths", lucene_lengths, "round document lengths to one byte, as Lucene does");
}

int lucene_length(int length) {
  constexpr int kExact = 24;  // lengths below it have codes of their own
  if (length < kExact) return length;
  const auto rest = static_cast<unsigned>(length - kExact);
  const int shift = std::max(0, static_cast<int>(std::bit_width(rest)) - 4);
  return kExact + static_cast<int>(rest >> shift << shift);
}

Bm25Index::Bm25Index(std::span<const std::string> documents, const Bm25Options& options, Analyzer analyzer)
    : analyzer_(std::move(analyzer)) {
  std::vector<int> lengths;
  lengths.reserve(documents.size());
  double total = 0;
  for (const std::string& text : documents) {
    const auto document = static_cast<std::int32_t>(lengths.size());
    std::vector<std::string> words = analyzer_(text);
    lengths.push_back(static_cast<int>(words.size()));
    total += lengths.back();
    for (std::string& word : words) {
      auto& list = postings_[word_number(std::move(word))];
      if (list.empty() || list.back().document != document) list.push_back({.document = document});
      ++list.back().count;
    }
  }

  const double count = static_cast<double>(documents.size());
  const double mean_length = total > 0 ? total / count : 1;
  for (int length : lengths) {
    const double counted = options.lucene_lengths ? lucene_length(length) : length;
    length_norm_.push_back(options.k1 * (1 - options.b + options.b * counted / mean_length));
  }
  for (const auto& list : postings_) {
    const double holding = static_cast<double>(list.size());
    idf_.push_back(std::log(1 + (count - holding + 0.5) / (holding + 0.5)));
  }
}

std::size_t Bm25Index::word_number(std::string word) {
  const auto [at, added] = words_.try_emplace(std::move(word), postings_.size());
  if (added) postings_.emplace_back();
  return at->second;
}

std::vector<Bm25Index::QueryWord> Bm25Index::known_words(std::string_view query) const {
  std::vector<QueryWord> known;
  for (const std::string& word : analyzer_(query)) {
    const auto at = words_.find(word);
    if (at == words_.end()) continue;
    const auto same = std::ranges::find(known, at->second, &QueryWord::word);
    if (same == known.end())
      known.push_back({.word = at->second, .count = 1});
    else
      ++same->count;
  }
  return known;
}

std::vector<SearchHit> Bm25Index::search(std::string_view query, int k) const {
  CARNOT_CHECK_GE(k, 0);
  if (length_norm_.empty()) return {};
  const auto words = known_words(query);
  if (words.empty()) return {};

  std::vector<double> scores(length_norm_.size(), 0.0);
  for (const auto& [word, count] : words) {
    const double weight = count * idf_[word];
    for (const auto& [document, frequency] : postings_[word])
      scores[document] += weight * (frequency / (frequency + length_norm_[document]));
  }

  std::vector<SearchHit> hits;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (scores[i] > 0) hits.push_back({.document = static_cast<int>(i), .score = scores[i]});
  const auto kept = hits.begin() + std::min<std::ptrdiff_t>(k, std::ssize(hits));
  std::partial_sort(hits.begin(), kept, hits.end(), [](const SearchHit& a, const SearchHit& b) {
    return a.score != b.score ? a.score > b.score : a.document < b.document;
  });
  hits.erase(kept, hits.end());
  return hits;
}

}  // namespace carnot
