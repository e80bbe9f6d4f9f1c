#include "carnot/worlds/webshop/title_nouns.h"

#include <algorithm>
#include <unordered_set>

#include "carnot/core/base/utf8.h"
#include "carnot/worlds/python/python_text.h"

namespace carnot {
namespace {

using WordSet = std::unordered_set<std::string_view>;

const WordSet& other_words() {
  static const WordSet kWords = {
      // function words
      "a", "about", "above", "after", "all", "along", "an", "and", "any", "are", "around", "as", "at", "be", "been",
      "before", "behind", "below", "between", "both", "but", "by", "can", "could", "do", "does", "during", "each",
      "either", "etc", "every", "few", "for", "from", "has", "have", "he", "her", "his", "how", "i", "if", "in", "into",
      "is", "it", "its", "less", "made", "many", "may", "me", "more", "most", "must", "my", "near", "no", "non", "not",
      "of", "off", "on", "only", "onto", "or", "other", "our", "out", "over", "own", "per", "plus", "same", "she",
      "should", "since", "so", "some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they",
      "this", "those", "through", "to", "too", "under", "until", "up", "upon", "us", "very", "via", "was", "we", "were",
      "what", "when", "where", "which", "while", "who", "will", "with", "within", "without", "would", "you", "your",
      // numbers
      "double", "dozen", "eight", "first", "five", "four", "half", "hundred", "nine", "one", "second", "seven",
      "single", "six", "ten", "third", "three", "triple", "two",
      // adjectives and participles
      "active", "adjustable", "adult", "advanced", "amazing", "anti", "authentic", "automatic", "available", "baggy",
      "beautiful", "best", "better", "big", "breathable", "bright", "certified", "cheap", "chic", "clean", "clear",
      "cold", "colorful", "comfortable", "comfy", "compact", "compatible", "complete", "cool", "creative", "cropped",
      "curved", "custom", "cute", "daily", "deep", "delicious", "different", "digital", "disposable", "dry", "durable",
      "easy", "elastic", "elegant", "electric", "essential", "extra", "fashionable", "fast", "fine", "fitted",
      "flexible", "floral", "foldable", "folding", "formal", "free", "fresh", "full", "funny", "gentle", "genuine",
      "good", "great", "handmade", "happy", "hard", "heavy", "high", "hot", "huge", "ideal", "important", "indoor",
      "inflatable", "instant", "invisible", "large", "lightweight", "little", "long", "loose", "lovely", "low",
      "luxury", "magnetic", "mens", "mini", "modern", "multi", "multifunctional", "natural", "new", "nice", "old",
      "organic", "original", "outdoor", "perfect", "personalized", "plain", "pleated", "portable", "powerful",
      "premium", "printed", "professional", "pure", "quick", "real", "recyclable", "red", "refillable", "relaxed",
      "removable", "replaceable", "reusable", "rich", "rotating", "round", "rustic", "safe", "sexy", "sharp", "short",
      "simple", "sleeveless", "slim", "small", "smart", "smooth", "soft", "solid", "special", "stackable", "standard",
      "stretchy", "strong", "stylish", "super", "sweet", "tall", "thick", "thin", "tight", "tiny", "traditional",
      "transparent", "unique", "universal", "upholstered", "upgraded", "useful", "vegan", "versatile", "vibrant",
      "warm", "washable", "waterproof", "wet", "whole", "wide", "wireless", "womens", "wooden",
      // verbs and adverbs
      "add", "apply", "bring", "buy", "choose", "come", "enjoy", "feel", "fits", "get", "give", "go", "help", "helps",
      "just", "keep", "let", "looking", "make", "makes", "making", "need", "never", "perfectly", "provide", "quickly",
      "ready", "reduce", "reduces", "say", "see", "slip", "take", "use", "used", "using", "wear", "wearing", "work",
      "works"};
  return kWords;
}

bool is_color_word(std::string_view word) {
  static const WordSet kColors = {"white", "black", "red",    "blue",   "green",  "grey", "gray",
                                  "brown", "pink",  "purple", "yellow", "orange", "beige"};
  return kColors.contains(word);
}

bool separates(char32_t code) {
  return is_white_space(code) || code == '/' || code == '-' || code == '|' || code == ',' || code == '(' ||
         code == ')' || code == '[' || code == ']' || code == '&' || code == '+' || code == ':' || code == ';' ||
         code == '"' || code == 0x2013 || code == 0x2014 || code == 0x3010 || code == 0x3011;
}

/// Without signs at its ends, except the period of an abbreviation, and without the possessive.
std::string_view bare_word(std::string_view word) {
  for (const std::string_view possessive : {"'s", "\u2019s"})
    if (word.ends_with(possessive)) word.remove_suffix(possessive.size());
  while (!word.empty() && !is_word_character(first_character(word).code_point))
    word.remove_prefix(static_cast<std::size_t>(first_character(word).length));
  while (!word.empty()) {
    const std::size_t last = last_character_begin(word);
    const bool abbreviation = word.back() == '.' && word.substr(0, word.size() - 1).find('.') != std::string_view::npos;
    if (abbreviation || is_word_character(first_character(word.substr(last)).code_point)) break;
    word = word.substr(0, last);
  }
  return word;
}

std::vector<std::string> title_words(std::string_view title) {
  std::vector<std::string> words;
  const std::string lower = python_lower(title);
  std::size_t begin = 0;
  const auto add = [&](std::size_t end) {
    if (const auto word = bare_word(std::string_view(lower).substr(begin, end - begin)); !word.empty())
      words.emplace_back(word);
  };
  for (std::size_t at = 0; at < lower.size();) {
    const Utf8Character character = first_character(std::string_view(lower).substr(at));
    const auto length = static_cast<std::size_t>(character.length);
    if (separates(character.code_point)) {
      add(at);
      begin = at + length;
    }
    at += length;
  }
  add(lower.size());
  return words;
}

}  // namespace

std::vector<std::string> title_nouns(std::string_view title) {
  std::vector<std::string> words = title_words(title), nouns;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const char first = words[i].front();
    const bool number = first >= '0' && first <= '9';
    const bool color_name = words[i] == "off" && i + 1 < words.size() && is_color_word(words[i + 1]);
    if (!number && (color_name || !other_words().contains(words[i]))) nouns.push_back(words[i]);
  }
  return nouns;
}

}  // namespace carnot
