#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/retrieval/bm25/index_mapping.h"
#include "carnot/retrieval/bm25/postings_block.h"

namespace carnot {
namespace {

/// Documents whose scores are added up at a time: their sums fit the first cache.
constexpr std::uint32_t kWindow = 2048;

/// What a word with count times inverse norm `x` adds to a score. Grows with `x`, in single precision too.
float contribution(float weight, float x) { return weight - weight / (1.0f + x); }

/// The postings of one word, read forward.
class WordCursor {
 public:
  WordCursor(const IndexMapping& index, std::size_t term, int times_in_query)
      : index_(&index),
        postings_(index.section(kPostings)),
        lengths_(index.records<std::uint8_t>(kLengths)),
        inverse_norm_(index.inverse_norm()) {
    const auto terms = index.records<IndexTerm>(kTerms);
    const auto blocks = index.records<IndexBlock>(kBlocks);
    num_documents_ = terms[term].num_documents;
    const std::uint64_t begin = terms[term].first_block, end = terms[term + 1].first_block;
    if (begin > end || end > blocks.size() || num_documents_ == 0 || num_documents_ > lengths_.size() ||
        end - begin != (num_documents_ + kBlockPostings - 1) / kBlockPostings)
      index.damaged("the blocks of a word");
    blocks_ = blocks.subspan(begin, end - begin);
    if (terms[term].postings_begin > postings_.size()) index.damaged("the postings of a word");
    postings_.remove_prefix(terms[term].postings_begin);

    const auto all = static_cast<double>(lengths_.size()), holding = static_cast<double>(num_documents_);
    weight_ =
        static_cast<float>(times_in_query) * static_cast<float>(std::log(1 + (all - holding + 0.5) / (holding + 0.5)));
  }

  /// No document in [begin, end) gets more from this word; `begin` never goes back.
  float bound(std::uint32_t begin, std::uint32_t end) {
    skip_blocks(begin);
    if (block_ == blocks_.size()) return 0;
    if (read_block_ == block_ && next_ < read_.size && read_.documents[next_] >= end) return 0;
    float most = 0;
    for (std::size_t i = block_; i < blocks_.size() && (i == block_ || blocks_[i - 1].last_document < end - 1); ++i)
      most = std::max(most, blocks_[i].most);
    return contribution(weight_, most);
  }

  /// Adds to the scores of all documents in [begin, end) that hold the word, and marks them.
  void add(std::uint32_t begin, std::uint32_t end, std::span<double> scores, std::span<std::uint64_t> marks) {
    for (skip_blocks(begin); block_ < blocks_.size(); ++block_) {
      read_block();
      while (next_ < read_.size && read_.documents[next_] < begin) ++next_;
      for (; next_ < read_.size && read_.documents[next_] < end; ++next_) {
        const std::uint32_t place = read_.documents[next_] - begin;
        scores[place] += value();
        marks[place / 64] |= std::uint64_t{1} << (place % 64);
      }
      if (next_ < read_.size) return;
    }
  }

  /// What the word adds to one document; documents are requested in their order.
  float at(std::uint32_t document) {
    skip_blocks(document);
    if (block_ == blocks_.size()) return 0;
    read_block();
    while (next_ < read_.size && read_.documents[next_] < document) ++next_;
    return next_ < read_.size && read_.documents[next_] == document ? value() : 0;
  }

 private:
  float value() const {
    const float norm = inverse_norm_[lengths_[read_.documents[next_]]];
    return contribution(weight_, static_cast<float>(read_.counts[next_]) * norm);
  }

  void skip_blocks(std::uint32_t document) {
    while (block_ < blocks_.size() && blocks_[block_].last_document < document) ++block_;
  }

  void read_block() {
    if (read_block_ == block_) return;
    const IndexBlock& block = blocks_[block_];
    const std::int64_t before = block_ == 0 ? -1 : std::int64_t{blocks_[block_ - 1].last_document};
    const std::size_t size = std::min(kBlockPostings, num_documents_ - block_ * kBlockPostings);
    if (block.last_document >= lengths_.size() || block.offset > postings_.size() ||
        !unpack_postings(postings_.substr(block.offset), before, block.last_document, size, read_))
      index_->damaged("a block of postings");
    read_block_ = block_;
    next_ = 0;
  }

  const IndexMapping* index_;
  std::string_view postings_;  // from the word's first block on
  std::span<const std::uint8_t> lengths_;
  std::span<const float> inverse_norm_;
  std::span<const IndexBlock> blocks_{};
  std::size_t num_documents_ = 0;
  float weight_ = 0;

  std::size_t block_ = 0;
  std::size_t read_block_ = std::numeric_limits<std::size_t>::max();
  PostingsBlock read_;
  std::size_t next_ = 0;  // in read_
};

std::string_view word_at(const IndexMapping& index, std::size_t term) {
  const auto terms = index.records<IndexTerm>(kTerms);
  const std::string_view words = index.section(kWords);
  const std::uint64_t begin = terms[term].word_begin, end = terms[term + 1].word_begin;
  if (begin > end || end > words.size()) index.damaged("its words");
  return words.substr(begin, end - begin);
}

std::optional<std::size_t> find_term(const IndexMapping& index, std::string_view word) {
  std::size_t low = 0, high = index.head().num_terms;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (word_at(index, middle) < word)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == index.head().num_terms || word_at(index, low) != word) return std::nullopt;
  return low;
}

std::vector<WordCursor> cursors_of(const IndexMapping& index, std::span<const std::string> words) {
  std::vector<std::pair<std::string_view, int>> distinct;
  for (const std::string& word : words) {
    const auto same = std::ranges::find(distinct, std::string_view(word), &std::pair<std::string_view, int>::first);
    if (same == distinct.end())
      distinct.emplace_back(word, 1);
    else
      ++same->second;
  }
  std::vector<WordCursor> cursors;
  for (const auto& [word, count] : distinct)
    if (const auto term = find_term(index, word)) cursors.emplace_back(index, *term, count);
  return cursors;
}

/// The best `k` so far. Documents come in their order, so one of an equal score never replaces another.
class BestHits {
 public:
  explicit BestHits(std::size_t k) : k_(k) {}

  /// Whether a document whose score is at most `bound` may belong to them. Sums are made in changing order: the bound
  /// is raised by more than that changes.
  bool may_enter(double bound) const { return static_cast<float>(bound * (1 + 1e-12)) > least_; }

  void offer(std::uint32_t document, double sum) {
    const float score = static_cast<float>(sum);
    if (!(score > least_)) return;
    hits_.push_back({.document = static_cast<int>(document), .score = score});
    std::ranges::push_heap(hits_, better);
    if (hits_.size() > k_) {
      std::ranges::pop_heap(hits_, better);
      hits_.pop_back();
    }
    if (hits_.size() == k_) least_ = static_cast<float>(hits_.front().score);
  }

  std::vector<SearchHit> sorted() && {
    std::ranges::sort(hits_, better);
    return std::move(hits_);
  }

 private:
  static bool better(const SearchHit& a, const SearchHit& b) {
    return a.score != b.score ? a.score > b.score : a.document < b.document;
  }

  std::size_t k_;
  float least_ = 0;
  std::vector<SearchHit> hits_{};  // a heap, the worst in front
};

/// One search: walks the windows of documents and leaves out what cannot change the result.
class WindowSearch {
 public:
  WindowSearch(std::vector<WordCursor> cursors, std::size_t k) : cursors_(std::move(cursors)), best_(k) {
    order_.resize(cursors_.size());
    bounds_.resize(cursors_.size());
    sums_.resize(cursors_.size() + 1);
  }

  std::vector<SearchHit> run(std::uint32_t num_documents) && {
    for (std::uint32_t begin = 0; begin < num_documents; begin += kWindow)
      search_window(begin, std::min(begin + kWindow, num_documents));
    return std::move(best_).sorted();
  }

 private:
  void search_window(std::uint32_t begin, std::uint32_t end) {
    sort_by_bounds(begin, end);
    if (!best_.may_enter(sums_.back())) return;
    std::size_t first = 0;  // words before it cannot make a document enter by themselves
    while (!best_.may_enter(sums_[first + 1])) ++first;
    for (std::size_t i = first; i < order_.size(); ++i) cursors_[order_[i]].add(begin, end, scores_, marks_);
    for (std::size_t i = 0; i < marks_.size(); ++i)
      for (std::uint64_t left = std::exchange(marks_[i], 0); left != 0; left &= left - 1) {
        const auto place = static_cast<std::uint32_t>(i * 64) + static_cast<std::uint32_t>(std::countr_zero(left));
        finish(begin + place, std::exchange(scores_[place], 0.0), first);
      }
  }

  /// Smallest bound first; sums_[i] bounds what the first i add together.
  void sort_by_bounds(std::uint32_t begin, std::uint32_t end) {
    for (std::size_t i = 0; i < cursors_.size(); ++i) {
      order_[i] = i;
      bounds_[i] = cursors_[i].bound(begin, end);
    }
    std::ranges::sort(order_, {}, [&](std::size_t i) { return bounds_[i]; });
    for (std::size_t i = 0; i < order_.size(); ++i) sums_[i + 1] = sums_[i] + double{bounds_[order_[i]]};
  }

  /// Adds what the first `left` words say of a document, unless it cannot enter any more.
  void finish(std::uint32_t document, double score, std::size_t left) {
    for (; left > 0; --left) {
      if (!best_.may_enter(score + sums_[left])) return;
      score += double{cursors_[order_[left - 1]].at(document)};
    }
    best_.offer(document, score);
  }

  std::vector<WordCursor> cursors_;
  BestHits best_;
  std::vector<std::size_t> order_{};
  std::vector<float> bounds_{};
  std::vector<double> sums_{};
  std::array<double, kWindow> scores_{};
  std::array<std::uint64_t, kWindow / 64> marks_{};
};

}  // namespace

std::vector<SearchHit> search_index(const IndexMapping& index, std::span<const std::string> words, int k) {
  CARNOT_CHECK_GE(k, 0);
  if (k == 0) return {};
  index.check_size();
  auto cursors = cursors_of(index, words);
  if (cursors.empty()) return {};
  return WindowSearch(std::move(cursors), static_cast<std::size_t>(k))
      .run(static_cast<std::uint32_t>(index.head().num_passages));
}

}  // namespace carnot
