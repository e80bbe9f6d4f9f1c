#include "carnot/retrieval/bm25/bm25.h"

#include <algorithm>
#include <cmath>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

constexpr int kExactLengths = 24;  // then eight more that are exact, and eight for each power of two

}  // namespace

const std::array<int, 256>& lucene_lengths() {
  static const std::array<int, 256> kLengths = [] {
    std::array<int, 256> lengths{};
    for (int code = 0; code < 256; ++code) {
      const int rest = code - kExactLengths;
      lengths[static_cast<std::size_t>(code)] =
          rest < 8 ? code
                   : static_cast<int>(kExactLengths + (static_cast<std::int64_t>((rest & 7) | 8) << (rest / 8 - 1)));
    }
    return lengths;
  }();
  return kLengths;
}

std::uint8_t lucene_length_code(int length) {
  CARNOT_CHECK_GE(length, 0);
  const auto& lengths = lucene_lengths();
  return static_cast<std::uint8_t>(std::ranges::upper_bound(lengths, length) - lengths.begin() - 1);
}

std::array<float, 256> lucene_inverse_norms(float k1, float b, double mean_length) {
  const auto mean = static_cast<float>(mean_length);
  std::array<float, 256> inverse{};
  std::ranges::transform(lucene_lengths(), inverse.begin(),
                         [&](int length) { return 1.0f / (k1 * ((1 - b) + b * static_cast<float>(length) / mean)); });
  return inverse;
}

void Bm25Options::fields(FieldVisitor& visit) {
  visit.field("k1", k1, "how slowly repeated words saturate", at_least(0));
  visit.field("b", b, "how much long documents are discounted", between(0, 1));
  visit.field("lucene_lengths", lucene_lengths, "round document lengths to one byte, as Lucene does");
}

Bm25Index::Bm25Index(std::span<const std::string> documents, const Bm25Options& options, Analyzer analyzer)
    : options_(options), analyzer_(std::move(analyzer)), num_documents_(static_cast<int>(documents.size())) {
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

  measure_documents(lengths, total);
  const double count = static_cast<double>(documents.size());
  for (const auto& list : postings_) {
    const double holding = static_cast<double>(list.size());
    idf_.push_back(std::log(1 + (count - holding + 0.5) / (holding + 0.5)));
  }
}

void Bm25Index::measure_documents(std::span<const int> lengths, double total) {
  const double mean_length = total > 0 ? total / static_cast<double>(lengths.size()) : 1;
  if (options_.arithmetic == Bm25Arithmetic::Lucene) {
    const auto by_code =
        lucene_inverse_norms(static_cast<float>(options_.k1), static_cast<float>(options_.b), mean_length);
    for (const int length : lengths) inverse_norm_.push_back(by_code[lucene_length_code(length)]);
    return;
  }
  for (const int length : lengths) {
    const double counted = options_.lucene_lengths ? lucene_length(length) : length;
    length_norm_.push_back(options_.k1 * (1 - options_.b + options_.b * counted / mean_length));
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

void Bm25Index::add_scores(std::span<const QueryWord> words, std::vector<double>& scores) const {
  for (const auto& [word, count] : words) {
    const double weight = count * idf_[word];
    for (const auto& [document, frequency] : postings_[word])
      scores[document] += weight * (frequency / (frequency + length_norm_[document]));
  }
}

void Bm25Index::add_lucene_scores(std::span<const QueryWord> words, std::vector<double>& scores) const {
  for (const auto& [word, count] : words) {
    const float weight = static_cast<float>(count) * static_cast<float>(idf_[word]);
    for (const auto& [document, frequency] : postings_[word])
      scores[document] += weight - weight / (1.0f + static_cast<float>(frequency) * inverse_norm_[document]);
  }
  for (double& score : scores) score = static_cast<float>(score);
}

std::vector<SearchHit> Bm25Index::search(std::string_view query, int k) const {
  CARNOT_CHECK_GE(k, 0);
  if (num_documents_ == 0) return {};
  const auto words = known_words(query);
  if (words.empty()) return {};

  std::vector<double> scores(static_cast<std::size_t>(num_documents_), 0.0);
  if (options_.arithmetic == Bm25Arithmetic::Lucene) {
    add_lucene_scores(words, scores);
  } else {
    add_scores(words, scores);
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
