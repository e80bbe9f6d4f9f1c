// worlds/webshop/title_nouns.h -- the nouns of a product's title, for the reward.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace carnot {

/// In lower case, in order, repeated ones too. WebShop asks spaCy's tagger (en_core_web_sm) for nouns and names; here
/// every word with a letter in front counts that is no function word, adjective, verb or adverb of a fixed list. `Off`
/// in front of a colour is part of the colour's name.
std::vector<std::string> title_nouns(std::string_view title);

}  // namespace carnot
