#include "carnot/worlds/webshop/reward.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/worlds/python/python_text.h"
#include "carnot/worlds/webshop/title_nouns.h"

namespace carnot {
namespace {

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

/// The words of a text as the comparison sees them: characters from U+0080 to U+00FF are dropped, what is neither
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
