#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "carnot/core/base/utf8.h"
#include "carnot/retrieval/bm25/analyzer.h"

namespace carnot {
namespace {

/// What UAX #29 calls Word_Break, as far as it decides what a word is.
enum class WordBreak : std::uint8_t {
  Other,
  Letter,
  Digit,
  Connector,  ///< ExtendNumLet: '_'
  MidLetter,  ///< between letters
  MidNumber,  ///< between digits
  MidBoth,    ///< between letters and between digits
  Katakana,
  Ideograph,  ///< its own word; Hiragana, too
  Complex,    ///< scripts without blanks, whose runs are one word: Thai, Lao, Khmer, Burmese
  Pictograph,
  RegionalIndicator,
  Extend,  ///< belongs to what precedes it
  Joiner,  ///< U+200D: Extend, and joins pictographs
};

/// Whether a range has the code: the ranges' first and last codes in turn.
constexpr bool in_ranges(std::span<const char32_t> ranges, char32_t code) {
  for (std::size_t i = 0; i < ranges.size(); i += 2)
    if (code >= ranges[i] && code <= ranges[i + 1]) return true;
  return false;
}

constexpr char32_t kIdeographs[] = {0x3005, 0x3005, 0x3007, 0x3007, 0x3021, 0x3029, 0x3041, 0x3096,  0x309D,
                                    0x309F, 0x3400, 0x4DBF, 0x4E00, 0x9FFF, 0xF900, 0xFAFF, 0x20000, 0x3134F};
constexpr char32_t kKatakana[] = {0x3031, 0x3035, 0x309B, 0x309C, 0x30A0, 0x30FA, 0x30FC,
                                  0x30FF, 0x31F0, 0x31FF, 0x32D0, 0x3357, 0xFF66, 0xFF9D};
constexpr char32_t kComplex[] = {0x0E01, 0x0E3A, 0x0E40, 0x0E4E, 0x0E81, 0x0ECD, 0x1000, 0x103F,
                                 0x1050, 0x108F, 0x1780, 0x17D3, 0x1950, 0x19C9, 0xAA60, 0xAADF};
/// Symbols that count as letters.
constexpr char32_t kLetterSymbols[] = {0x02C2, 0x02C5, 0x02D2, 0x02D7, 0x02DE, 0x02DF, 0x02E5, 0x02EB,
                                       0x02ED, 0x02ED, 0x02EF, 0x02FF, 0x24B6, 0x24E9, 0xA708, 0xA721};

constexpr std::u32string_view kMidLetters = U":\u00B7\u0387\u055F\u05F4\u2027\uFE13\uFE55\uFF1A";
constexpr std::u32string_view kMidBoth = U".'\u2018\u2019\u2024\uFE52\uFF07\uFF0E";
constexpr std::u32string_view kMidNumbers =
    U",;\u037E\u0589\u060C\u060D\u066C\u07F8\u2044\uFE10\uFE14\uFE50\uFE54\uFF0C\uFF1B";

WordBreak special_break(char32_t code) {
  if (kMidLetters.find(code) != kMidLetters.npos) return WordBreak::MidLetter;
  if (kMidBoth.find(code) != kMidBoth.npos) return WordBreak::MidBoth;
  if (kMidNumbers.find(code) != kMidNumbers.npos) return WordBreak::MidNumber;
  if (code == 0x202F) return WordBreak::Connector;
  if (code == 0x200D) return WordBreak::Joiner;
  return code == 0xFF9E || code == 0xFF9F ? WordBreak::Extend : WordBreak::Other;
}

WordBreak break_of_category(char32_t code) {
  const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
  switch (property->category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL: return WordBreak::Letter;
    case UTF8PROC_CATEGORY_ND: return WordBreak::Digit;
    case UTF8PROC_CATEGORY_PC: return WordBreak::Connector;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_MC: return WordBreak::Extend;
    case UTF8PROC_CATEGORY_CF: return code == 0x200B ? WordBreak::Other : WordBreak::Extend;
    default: break;
  }
  if (code >= 0x1F3FB && code <= 0x1F3FF) return WordBreak::Extend;
  if (property->boundclass == UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC) return WordBreak::Pictograph;
  if (property->boundclass == UTF8PROC_BOUNDCLASS_REGIONAL_INDICATOR) return WordBreak::RegionalIndicator;
  return WordBreak::Other;
}

WordBreak find_break(char32_t code) {
  if (const WordBreak special = special_break(code); special != WordBreak::Other) return special;
  if (code >= 0x2C2 && in_ranges(kLetterSymbols, code)) return WordBreak::Letter;
  if (code >= 0xE01) {
    if (in_ranges(kComplex, code)) return WordBreak::Complex;
    if (in_ranges(kIdeographs, code)) return WordBreak::Ideograph;
    if (in_ranges(kKatakana, code)) return WordBreak::Katakana;
  }
  return break_of_category(code);
}

WordBreak break_of(char32_t code) {
  static const auto kAscii = [] {
    std::array<WordBreak, 128> table{};
    for (char32_t ascii = 0; ascii < 128; ++ascii) table[ascii] = find_break(ascii);
    return table;
  }();
  return code < kAscii.size() ? kAscii[code] : find_break(code);
}

bool extends(WordBreak kind) { return kind == WordBreak::Extend || kind == WordBreak::Joiner; }

/// The characters of a text and where they begin.
struct TextCharacter {
  std::uint32_t begin = 0;
  WordBreak kind = WordBreak::Other;
};

std::vector<TextCharacter> characters_of(std::string_view text) {
  std::vector<TextCharacter> all;
  all.reserve(text.size() + 1);
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      all.push_back({.begin = static_cast<std::uint32_t>(at), .kind = break_of(byte)});
      ++at;
      continue;
    }
    const Utf8Character character = first_character(text.substr(at));
    const WordBreak kind = character.valid ? break_of(character.code_point) : WordBreak::Other;
    all.push_back({.begin = static_cast<std::uint32_t>(at), .kind = kind});
    at += static_cast<std::size_t>(character.length);
  }
  all.push_back({.begin = static_cast<std::uint32_t>(text.size())});
  return all;
}

/// Finds the words of a text, one after the other.
class WordFinder {
 public:
  explicit WordFinder(std::string_view text) : text_(text), characters_(characters_of(text)) {}

  /// The next word; empty at the end.
  std::string_view next() {
    while (at_ + 1 < characters_.size()) {
      const std::size_t begin = at_;
      if (!take_word()) continue;
      constexpr std::size_t kMaxWordCharacters = 255;
      at_ = std::min(at_, begin + kMaxWordCharacters);
      return text_.substr(characters_[begin].begin, characters_[at_].begin - characters_[begin].begin);
    }
    return {};
  }

 private:
  WordBreak kind(std::size_t i) const { return characters_[i].kind; }

  /// The first character from `i` on that does not belong to the one before.
  std::size_t after_extends(std::size_t i) const {
    while (extends(kind(i))) ++i;
    return i;
  }

  /// Moves past a word, or past one character that begins none.
  bool take_word() {
    switch (kind(at_)) {
      case WordBreak::Letter:
      case WordBreak::Digit:
      case WordBreak::Katakana:
      case WordBreak::Connector: return take_run();
      case WordBreak::Ideograph: at_ = after_extends(at_ + 1); return true;
      case WordBreak::Complex:
        while (kind(at_) == WordBreak::Complex || extends(kind(at_))) ++at_;
        return true;
      case WordBreak::Pictograph: return take_pictographs();
      case WordBreak::RegionalIndicator: {
        const bool pair = kind(after_extends(at_ + 1)) == WordBreak::RegionalIndicator;
        at_ = after_extends((pair ? after_extends(at_ + 1) : at_) + 1);
        return pair;
      }
      default: ++at_; return false;
    }
  }

  bool take_pictographs() {
    do {
      at_ = after_extends(at_ + 1);
    } while (kind(at_ - 1) == WordBreak::Joiner && kind(at_) == WordBreak::Pictograph);
    return true;
  }

  bool take_run() {
    bool word = false;
    while (true) {
      const WordBreak present = kind(at_);
      word = word || present != WordBreak::Connector;
      const std::size_t next = after_extends(at_ + 1);
      if (joined(present, kind(next))) {
        at_ = next;
        continue;
      }
      const std::size_t behind = next + 1 < characters_.size() ? after_extends(next + 1) : next;
      if (!spans(present, kind(next)) || kind(behind) != present) {
        at_ = next;
        return word;
      }
      at_ = behind;
    }
  }

  static bool joined(WordBreak left, WordBreak right) {
    if (right == WordBreak::Connector) return true;
    if (right == WordBreak::Katakana) return left == WordBreak::Katakana || left == WordBreak::Connector;
    return (right == WordBreak::Letter || right == WordBreak::Digit) && left != WordBreak::Katakana;
  }

  /// Whether `middle` keeps two characters of the kind `side` together.
  static bool spans(WordBreak side, WordBreak middle) {
    if (side == WordBreak::Letter) return middle == WordBreak::MidLetter || middle == WordBreak::MidBoth;
    if (side == WordBreak::Digit) return middle == WordBreak::MidNumber || middle == WordBreak::MidBoth;
    return false;
  }

  std::string_view text_;
  std::vector<TextCharacter> characters_;  // and one for the end
  std::size_t at_ = 0;
};

std::string_view without_possessive(std::string_view word) {
  for (const std::string_view quote : {"'", "\u2019", "\uFF07"})
    for (const char s : {'s', 'S'})
      if (word.size() > quote.size() && word.back() == s && word.substr(0, word.size() - 1).ends_with(quote))
        return word.substr(0, word.size() - 1 - quote.size());
  return word;
}

std::string lower_letters(std::string_view word) {
  std::string lower;
  lower.reserve(word.size());
  while (!word.empty()) {
    const char byte = word.front();
    if (static_cast<unsigned char>(byte) < 0x80) {
      lower += byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
      word.remove_prefix(1);
      continue;
    }
    const Utf8Character character = first_character(word);
    append_utf8(lower, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character.code_point))));
    word.remove_prefix(static_cast<std::size_t>(character.length));
  }
  return lower;
}

bool is_stop_word(std::string_view word) {
  static constexpr std::array<std::string_view, 33> kStopWords = {
      "a",   "an",    "and",  "are",   "as",    "at",   "be",   "but", "by",  "for",  "if",
      "in",  "into",  "is",   "it",    "no",    "not",  "of",   "on",  "or",  "such", "that",
      "the", "their", "then", "there", "these", "they", "this", "to",  "was", "will", "with"};
  return word.size() <= 5 && std::ranges::find(kStopWords, word) != kStopWords.end();
}

}  // namespace

std::vector<std::string> lucene_english_words(std::string_view text) {
  std::vector<std::string> words;
  WordFinder finder(text);
  for (std::string_view found = finder.next(); !found.empty(); found = finder.next()) {
    std::string word = lower_letters(without_possessive(found));
    if (!is_stop_word(word)) words.push_back(porter_stem(std::move(word)));
  }
  return words;
}

}  // namespace carnot
