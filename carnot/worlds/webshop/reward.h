// worlds/webshop/reward.h -- what a purchase is worth, as WebShop counts it.
//
//   reward = type * (attributes found + options found + [price <= bound]) / (attributes + options + 1)
//
// (Yao et al. 2022, arXiv:2207.01206; the details, odd ones too, are those of the authors' code.)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/worlds/webshop/goals.h"
#include "carnot/worlds/webshop/products.h"

namespace carnot {

/// In lower case, in order, repeated ones too. WebShop asks spaCy's tagger (en_core_web_sm) for nouns and names; here
/// every word with a letter in front counts that is no function word, adjective, verb or adverb of a fixed list. `Off`
/// in front of a colour is part of the colour's name.
std::vector<std::string> title_nouns(std::string_view title);

/// The first of WebShop's colours that is part of the text, in the order of its list; the text itself where none is.
std::string_view normalize_color(std::string_view text);

/// thefuzz's token_set_ratio: how alike two texts are as sets of words, 0 to 100.
int token_set_ratio(std::string_view a, std::string_view b);

/// Whether the purchase is of the kind that was asked for.
struct TypeReward {
  double factor = 0;  ///< 0, 0.1, 0.5 or 1
  bool query_match = false;
  bool category_match = false;  ///< two categories in common
  double title_score = 0;       ///< share of the wanted title's nouns that the bought title has; 0.2 where it has none
};
TypeReward type_reward(const ShopProduct& bought, const ShopProduct& wanted);

/// How many of the attributes the product has: listed with a ratio above 85, or part of title, bullets or description.
int attribute_hits(const ShopProduct& bought, const std::vector<std::string>& wanted);

/// How many of the wanted options one of the chosen values matches, with a ratio above 85 after normalize_color. A
/// wanted option that has a name counts with it: its colour is normalised only where name or value is that colour, and
/// its name belongs to its words.
int option_hits(const std::vector<std::string>& chosen, const std::vector<GoalOption>& wanted);

/// In [0, 1]. `price`: of the bought product.
double shop_reward(const ShopProduct& bought, const ShopProduct& wanted, const ShopGoal& goal,
                   const std::vector<std::string>& chosen, double price);

}  // namespace carnot
