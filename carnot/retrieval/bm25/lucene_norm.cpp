#include "carnot/retrieval/bm25/lucene_norm.h"

#include <algorithm>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

constexpr int kExactLengths = 24;  // then eight more that are exact, and eight for each power of two

std::array<int, 256> make_lucene_lengths() {
  std::array<int, 256> lengths{};
  for (int code = 0; code < 256; ++code) {
    const int rest = code - kExactLengths;
    lengths[static_cast<std::size_t>(code)] =
        rest < 8 ? code
                 : static_cast<int>(kExactLengths + (static_cast<std::int64_t>((rest & 7) | 8) << (rest / 8 - 1)));
  }
  return lengths;
}

}  // namespace

const std::array<int, 256>& lucene_lengths() {
  static const std::array<int, 256> lengths = make_lucene_lengths();
  return lengths;
}

std::uint8_t lucene_length_code(int length) {
  CARNOT_CHECK_GE(length, 0);
  const auto& lengths = lucene_lengths();
  return static_cast<std::uint8_t>(std::ranges::upper_bound(lengths, length) - lengths.begin() - 1);
}

}  // namespace carnot
