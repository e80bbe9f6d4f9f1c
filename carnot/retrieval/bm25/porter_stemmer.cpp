#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "carnot/core/base/utf8.h"
#include "carnot/retrieval/bm25/analyzer.h"

namespace carnot {
namespace {

struct SuffixRule {
  std::string_view suffix;
  std::string_view replacement;
};

/// Works on characters, because the rules count them: std::string for ASCII, std::u32string for the rest.
template <class Text>
class PorterStemming {
 public:
  explicit PorterStemming(Text word) : word_(std::move(word)) {}

  Text stem() {
    if (word_.size() <= 2) return word_;
    plurals_and_participles();
    if (ends("y") && has_vowel()) word_.back() = 'i';
    double_suffixes();
    full_suffixes();
    residual_suffixes();
    final_letters();
    return word_;
  }

 private:
  bool consonant(std::size_t i) const {
    switch (word_[i]) {
      case 'a':
      case 'e':
      case 'i':
      case 'o':
      case 'u': return false;
      case 'y': return i == 0 || !consonant(i - 1);
      default: return true;
    }
  }

  /// How often a vowel is followed by a consonant in the stem: Porter's m.
  int measure() const { return measure(stem_); }
  int measure(std::size_t length) const {
    int count = 0;
    for (std::size_t i = 1; i < length; ++i) count += !consonant(i - 1) && consonant(i) ? 1 : 0;
    return count;
  }

  bool has_vowel() const {
    for (std::size_t i = 0; i < stem_; ++i)
      if (!consonant(i)) return true;
    return false;
  }

  bool double_consonant() const {
    const std::size_t n = word_.size();
    return n >= 2 && word_[n - 1] == word_[n - 2] && consonant(n - 1);
  }

  /// The first `length` letters end in consonant, vowel, consonant other than w, x, y: "hop", not "snow".
  bool short_syllable(std::size_t length) const {
    if (length < 3 || !consonant(length - 1) || consonant(length - 2) || !consonant(length - 3)) return false;
    const auto last = word_[length - 1];
    return last != 'w' && last != 'x' && last != 'y';
  }

  /// Sets the stem to what is before the suffix.
  bool ends(std::string_view suffix) {
    if (suffix.size() > word_.size()) return false;
    const std::size_t begin = word_.size() - suffix.size();
    if (!std::equal(suffix.begin(), suffix.end(), word_.begin() + static_cast<std::ptrdiff_t>(begin))) return false;
    stem_ = begin;
    return true;
  }

  void set_suffix(std::string_view suffix) {
    word_.resize(stem_);
    word_.append(suffix.begin(), suffix.end());
  }

  void plurals_and_participles() {
    if (word_.back() == 's') {
      if (ends("sses")) {
        set_suffix("ss");
      } else if (ends("ies")) {
        set_suffix("i");
      } else if (word_[word_.size() - 2] != 's') {
        word_.pop_back();
      }
    }
    if (ends("eed")) {
      if (measure() > 0) word_.pop_back();
      return;
    }
    if (!(ends("ed") || ends("ing")) || !has_vowel()) return;
    word_.resize(stem_);
    if (ends("at")) {
      set_suffix("ate");
    } else if (ends("bl")) {
      set_suffix("ble");
    } else if (ends("iz")) {
      set_suffix("ize");
    } else if (double_consonant()) {
      const auto last = word_.back();
      if (last != 'l' && last != 's' && last != 'z') word_.pop_back();
    } else if (measure(word_.size()) == 1 && short_syllable(word_.size())) {
      word_.push_back('e');
    }
  }

  /// Replaces the first suffix of the list that the word has, if its stem has a vowel and a consonant.
  void replace_one(std::initializer_list<SuffixRule> rules) {
    for (const SuffixRule& rule : rules) {
      if (!ends(rule.suffix)) continue;
      if (measure() > 0) set_suffix(rule.replacement);
      return;
    }
  }

  void double_suffixes() {
    replace_one({{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
                 {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"}, {"eli", "e"},     {"ousli", "ous"},
                 {"ization", "ize"}, {"ation", "ate"},   {"ator", "ate"},  {"alism", "al"},  {"iveness", "ive"},
                 {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},  {"iviti", "ive"}, {"biliti", "ble"},
                 {"logi", "log"}});
  }

  void full_suffixes() {
    replace_one(
        {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""}, {"ness", ""}});
  }

  void residual_suffixes() {
    for (const std::string_view suffix : {"al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment",
                                          "ent", "ion", "ou", "ism", "ate", "iti", "ous", "ive", "ize"}) {
      if (!ends(suffix)) continue;
      if (suffix == "ion" && (stem_ == 0 || (word_[stem_ - 1] != 's' && word_[stem_ - 1] != 't'))) return;
      if (measure() > 1) word_.resize(stem_);
      return;
    }
  }

  void final_letters() {
    if (word_.back() == 'e') {
      const int count = measure(word_.size());
      if (count > 1 || (count == 1 && !short_syllable(word_.size() - 1))) word_.pop_back();
    }
    if (word_.back() == 'l' && double_consonant() && measure(word_.size()) > 1) word_.pop_back();
  }

  Text word_;
  std::size_t stem_ = 0;  // length of what is before the suffix found last
};

}  // namespace

std::string porter_stem(std::string word) {
  if (std::ranges::all_of(word, [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return PorterStemming<std::string>(std::move(word)).stem();
  std::u32string letters;
  for (std::string_view rest = word; !rest.empty();) {
    const Utf8Character character = first_character(rest);
    if (!character.valid) return word;
    letters += character.code_point;
    rest.remove_prefix(static_cast<std::size_t>(character.length));
  }
  std::string stem;
  for (const char32_t letter : PorterStemming<std::u32string>(std::move(letters)).stem()) append_utf8(stem, letter);
  return stem;
}

}  // namespace carnot
