#include "carnot/core/credit/similarity.h"

#include <string>
#include <unordered_map>
#include <vector>

#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

/// Bytes that do not start a code point are joined to the previous one; the string need not be valid UTF-8.
std::u32string code_points(std::string_view text) {
  std::u32string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (continues_character(c) && !out.empty())
      out.back() = (out.back() << 6) | (byte & 0x3Fu);
    else
      out.push_back(byte);
  }
  return out;
}

struct Block {
  std::size_t a = 0;
  std::size_t b = 0;
  std::size_t size = 0;
};

class Matcher {
 public:
  Matcher(std::u32string a, std::u32string b) : a_(std::move(a)), b_(std::move(b)) {
    for (std::size_t j = 0; j < b_.size(); ++j) places_[b_[j]].push_back(j);
    if (b_.size() < kManyElements) return;
    std::erase_if(places_, [&](const auto& entry) { return entry.second.size() > b_.size() / 100 + 1; });
  }

  std::size_t matching() const { return matching(0, a_.size(), 0, b_.size()); }

 private:
  static constexpr std::size_t kManyElements = 200;

  std::size_t matching(std::size_t a_low, std::size_t a_high, std::size_t b_low, std::size_t b_high) const {
    const Block block = longest(a_low, a_high, b_low, b_high);
    if (block.size == 0) return 0;
    return block.size + matching(a_low, block.a, b_low, block.b) +
           matching(block.a + block.size, a_high, block.b + block.size, b_high);
  }

  /// The longest common block, the first in `a`, then in `b`; extended at both ends over popular characters.
  Block longest(std::size_t a_low, std::size_t a_high, std::size_t b_low, std::size_t b_high) const {
    Block best{.a = a_low, .b = b_low};
    std::unordered_map<std::size_t, std::size_t> length_at;
    for (std::size_t i = a_low; i < a_high; ++i) {
      std::unordered_map<std::size_t, std::size_t> next;
      const auto places = places_.find(a_[i]);
      if (places != places_.end()) {
        for (std::size_t j : places->second) {
          if (j < b_low || j >= b_high) continue;
          const auto before = j > 0 ? length_at.find(j - 1) : length_at.end();
          const std::size_t length = 1 + (before == length_at.end() ? 0 : before->second);
          next[j] = length;
          if (length > best.size) best = {.a = i + 1 - length, .b = j + 1 - length, .size = length};
        }
      }
      length_at = std::move(next);
    }
    while (best.a > a_low && best.b > b_low && a_[best.a - 1] == b_[best.b - 1])
      best = {.a = best.a - 1, .b = best.b - 1, .size = best.size + 1};
    while (best.a + best.size < a_high && best.b + best.size < b_high &&
           a_[best.a + best.size] == b_[best.b + best.size])
      ++best.size;
    return best;
  }

  std::u32string a_;
  std::u32string b_;
  std::unordered_map<char32_t, std::vector<std::size_t>> places_{};
};

}  // namespace

double similarity(std::string_view a, std::string_view b) {
  const std::u32string left = code_points(a);
  const std::u32string right = code_points(b);
  if (left.empty() && right.empty()) return 1;
  const double total = static_cast<double>(left.size() + right.size());
  return 2.0 * static_cast<double>(Matcher(left, right).matching()) / total;
}

}  // namespace carnot
