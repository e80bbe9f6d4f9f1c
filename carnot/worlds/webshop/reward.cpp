#include "carnot/worlds/webshop/reward.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <unordered_set>
#include <utility>

#include "carnot/core/base/strings.h"
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

constexpr int kAlike = 85;

// WebShop's list (MIT).
constexpr std::array<std::string_view, 102> kColors = {
    "alabaster",  "apricot",   "aqua",     "ash",      "asphalt",   "azure",     "banana",   "beige",    "black",
    "blue",       "blush",     "bordeaux", "bronze",   "brown",     "burgundy",  "camel",    "camo",     "caramel",
    "champagne",  "charcoal",  "cheetah",  "chestnut", "chocolate", "christmas", "coffee",   "cognac",   "copper",
    "coral",      "cranberry", "cream",    "crystal",  "dark",      "denim",     "eggplant", "elephant", "espresso",
    "fuchsia",    "gold",      "granite",  "grape",    "graphite",  "grass",     "gray",     "green",    "grey",
    "heather",    "indigo",    "ivory",    "ivy",      "khaki",     "lavender",  "lemon",    "leopard",  "light",
    "lilac",      "lime",      "magenta",  "maroon",   "mauve",     "merlot",    "midnight", "mint",     "mocha",
    "multicolor", "mushroom",  "mustard",  "natural",  "navy",      "nude",      "olive",    "orange",   "peach",
    "pewter",     "pink",      "plum",     "purple",   "rainbow",   "red",       "rose",     "royal",    "rust",
    "sand",       "sapphire",  "seashell", "silver",   "skull",     "slate",     "steel",    "stone",    "stonewash",
    "sunflower",  "tan",       "taupe",    "teal",     "tiger",     "turquoise", "violet",   "walnut",   "wheat",
    "white",      "wine",      "yellow"};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// The words of a string as the comparison sees them: characters from U+0080 to U+00FF are dropped, what is neither
/// letter, digit nor `_` separates, letters are in lower case. Sorted, each once.
std::set<std::u32string> compared_words(std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    const Utf8Character character = first_character(text);
    text.remove_prefix(static_cast<std::size_t>(character.length));
    if (!character.valid || (character.code_point >= 0x80 && character.code_point <= 0xFF)) continue;
    append_utf8(kept, is_word_character(character.code_point) ? character.code_point : U' ');
  }
  std::set<std::u32string> words;
  std::u32string word;
  const std::string lower = python_lower(kept);
  for (std::string_view rest = lower; !rest.empty();) {
    const Utf8Character character = first_character(rest);
    rest.remove_prefix(static_cast<std::size_t>(character.length));
    if (character.code_point != ' ') {
      word += character.code_point;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.insert(word);
  return words;
}

std::u32string joined(const std::vector<std::u32string>& words) {
  std::u32string text;
  for (const std::u32string& word : words) text += (text.empty() ? U"" : U" ") + word;
  return text;
}

/// Insertions and deletions that make one text of the other.
std::size_t indel_distance(const std::u32string& a, const std::u32string& b) {
  std::vector<std::size_t> longest(b.size() + 1, 0);  // common subsequence of a's beginning and b's beginnings
  for (const char32_t letter : a) {
    std::size_t diagonal = 0;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = longest[j];
      longest[j] = letter == b[j - 1] ? diagonal + 1 : std::max(above, longest[j - 1]);
      diagonal = above;
    }
  }
  return a.size() + b.size() - 2 * longest[b.size()];
}

double ratio_of(std::size_t distance, std::size_t lengths) {
  return lengths == 0 ? 100.0 : 100.0 - 100.0 * static_cast<double>(distance) / static_cast<double>(lengths);
}

std::set<std::string_view> categories(std::string_view path) {
  constexpr std::string_view kArrow = "\u203A";
  std::set<std::string_view> all;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t arrow = std::min(path.find(kArrow, from), path.size());
    all.insert(stripped(path.substr(from, arrow - from)));
    from = arrow + kArrow.size();
  }
  return all;
}

template <class T>
std::size_t count_common(const std::set<T>& a, const std::set<T>& b) {
  return static_cast<std::size_t>(std::ranges::count_if(a, [&](const T& item) { return b.contains(item); }));
}

double title_score(std::string_view bought, std::string_view wanted) {
  constexpr double kWithoutNouns = 0.2;
  const auto wanted_nouns = title_nouns(wanted), bought_nouns = title_nouns(bought);
  if (wanted_nouns.empty()) return kWithoutNouns;
  const std::set<std::string> a(wanted_nouns.begin(), wanted_nouns.end()), b(bought_nouns.begin(), bought_nouns.end());
  return static_cast<double>(count_common(a, b)) / static_cast<double>(wanted_nouns.size());
}

/// A wanted option as the comparison sees it.
std::string compared_option(const GoalOption& option) {
  if (option.name.empty()) return std::string(normalize_color(option.value));
  for (const std::string_view color : kColors)
    if (option.name == color || option.value == color) return std::string(color);
  return option.name + " " + option.value;
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

std::string_view normalize_color(std::string_view text) {
  for (const std::string_view color : kColors)
    if (contains(text, color)) return color;
  return text;
}

int token_set_ratio(std::string_view a, std::string_view b) {
  const auto words_a = compared_words(a), words_b = compared_words(b);
  if (words_a.empty() || words_b.empty()) return 0;
  std::vector<std::u32string> common, only_a, only_b;
  std::ranges::set_intersection(words_a, words_b, std::back_inserter(common));
  std::ranges::set_difference(words_a, words_b, std::back_inserter(only_a));
  std::ranges::set_difference(words_b, words_a, std::back_inserter(only_b));
  if (!common.empty() && (only_a.empty() || only_b.empty())) return 100;

  const std::u32string rest_a = joined(only_a), rest_b = joined(only_b);
  const std::size_t shared = joined(common).size(), blank = shared > 0 ? 1 : 0;
  const std::size_t length_a = shared + blank + rest_a.size(), length_b = shared + blank + rest_b.size();
  double best = ratio_of(indel_distance(rest_a, rest_b), length_a + length_b);
  if (shared > 0)
    best = std::max(
        {best, ratio_of(blank + rest_a.size(), shared + length_a), ratio_of(blank + rest_b.size(), shared + length_b)});
  return static_cast<int>(std::nearbyint(best));
}

TypeReward type_reward(const ShopProduct& bought, const ShopProduct& wanted) {
  constexpr double kSimilarTitle = 0.2, kOtherTitle = 0.1;
  TypeReward reward{
      .query_match = bought.query == wanted.query,
      .category_match = count_common(categories(bought.product_category), categories(wanted.product_category)) >= 2,
      .title_score = title_score(bought.title, wanted.title)};
  const bool match = reward.query_match || reward.category_match || reward.title_score > kSimilarTitle;
  reward.factor = match ? 1 : 0.5;
  if (reward.title_score < kOtherTitle) reward.factor = 0.1;
  if (reward.title_score == 0) reward.factor = 0;
  return reward;
}

int attribute_hits(const ShopProduct& bought, const std::vector<std::string>& wanted) {
  const std::string texts[] = {python_lower(bought.title), python_lower(join(bought.bullets, " ")),
                               python_lower(bought.description)};
  const auto has = [&](const std::string& attribute) {
    return std::ranges::any_of(bought.attributes,
                               [&](const std::string& own) { return token_set_ratio(own, attribute) > kAlike; }) ||
           std::ranges::any_of(texts, [&](const std::string& text) { return contains(text, attribute); });
  };
  return static_cast<int>(std::ranges::count_if(wanted, has));
}

int option_hits(const std::vector<std::string>& chosen, const std::vector<GoalOption>& wanted) {
  const auto has = [&](const GoalOption& option) {
    const std::string compared = compared_option(option);
    return std::ranges::any_of(
        chosen, [&](const std::string& value) { return token_set_ratio(normalize_color(value), compared) > kAlike; });
  };
  return static_cast<int>(std::ranges::count_if(wanted, has));
}

double shop_reward(const ShopProduct& bought, const ShopProduct& wanted, const ShopGoal& goal,
                   const std::vector<std::string>& chosen, double price) {
  const int hits =
      attribute_hits(bought, goal.attributes) + option_hits(chosen, goal.options) + (price <= goal.price_bound ? 1 : 0);
  const auto asked = static_cast<double>(goal.attributes.size() + goal.options.size() + 1);
  return hits / asked * type_reward(bought, wanted).factor;
}

}  // namespace carnot
