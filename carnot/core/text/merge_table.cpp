#include "carnot/core/text/merge_table.h"

#include <algorithm>
#include <bit>

namespace carnot {
namespace {

// Up to here looking at every pair is quicker than keeping a heap.
constexpr std::size_t kShort = 48;

}  // namespace

MergeTable::MergeTable(const std::vector<Merge>& merges) {
  const std::size_t size = std::bit_ceil(2 * merges.size() + 2);
  slots_.resize(size);
  shift_ = 64 - std::countr_zero(size);
  for (std::uint32_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    slots_[index_of(merge.left, merge.right)] = {
        .pair = key(merge.left, merge.right), .rank = rank, .result = merge.result};
  }
}

std::size_t MergeTable::index_of(TokenId left, TokenId right) const {
  const std::uint64_t pair = key(left, right);
  std::size_t at = home(pair);
  while (slots_[at].pair != pair && slots_[at].rank != kNone) at = (at + 1) & (slots_.size() - 1);
  return at;
}

void MergeTable::merge(std::vector<TokenId>& tokens, Scratch& scratch) const {
  if (tokens.size() < 2) return;
  tokens.size() <= kShort ? merge_short(tokens, scratch) : merge_long(tokens, scratch);
}

void MergeTable::merge_short(std::vector<TokenId>& tokens, Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  symbols.clear();
  for (const TokenId token : tokens) symbols.push_back({.token = token, .rank = kNone});
  const auto rank_at = [&](std::size_t i) {
    return i + 1 < symbols.size() ? find(symbols[i].token, symbols[i + 1].token).rank : kNone;
  };
  for (std::size_t i = 0; i < symbols.size(); ++i) symbols[i].rank = rank_at(i);

  while (true) {
    const auto best =
        std::min_element(symbols.begin(), symbols.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    if (best->rank == kNone) break;
    const auto at = static_cast<std::size_t>(best - symbols.begin());
    best->token = find(best->token, symbols[at + 1].token).result;
    symbols.erase(best + 1);
    symbols[at].rank = rank_at(at);
    if (at > 0) symbols[at - 1].rank = rank_at(at - 1);
  }
  tokens.clear();
  for (const auto& symbol : symbols) tokens.push_back(symbol.token);
}

void MergeTable::merge_long(std::vector<TokenId>& tokens, Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  symbols.clear();
  heap.clear();
  const int count = static_cast<int>(tokens.size());
  const auto at = [&](int i) -> Scratch::Symbol& { return symbols[i]; };
  for (int i = 0; i < count; ++i) symbols.push_back({.token = tokens[i], .next = i + 1, .previous = i - 1});

  const auto later = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  };
  const auto propose = [&](int i) {
    const int next = at(i).next;
    if (next == count) return;
    const Slot& slot = find(at(i).token, at(next).token);
    if (slot.rank == kNone) return;
    heap.push_back({.rank = slot.rank, .position = i, .left = at(i).token, .right = at(next).token});
    std::push_heap(heap.begin(), heap.end(), later);
  };
  for (int i = 0; i + 1 < count; ++i) propose(i);

  constexpr TokenId kGone = -1;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const Scratch::Candidate candidate = heap.back();
    heap.pop_back();
    auto& left = at(candidate.position);
    // A proposal is stale once either neighbour has merged with another.
    if (left.token != candidate.left || left.next == count || at(left.next).token != candidate.right) continue;
    auto& right = at(left.next);
    left.token = find(left.token, right.token).result;
    left.next = right.next;
    right.token = kGone;
    if (left.next < count) at(left.next).previous = candidate.position;
    if (left.previous >= 0) propose(left.previous);
    propose(candidate.position);
  }
  tokens.clear();
  for (int i = 0; i < count; i = at(i).next) tokens.push_back(at(i).token);
}

}  // namespace carnot
