// worlds/webshop/demonstrator.h -- shops by script: it knows which product the goal was made from.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/worlds/webshop/game.h"

namespace carnot {

/// The next action of a shopper who searches for the goal's product with the instruction's words, or the title's where
/// those do not find it, opens it, chooses the options and buys.
class ShopDemonstrator {
 public:
  explicit ShopDemonstrator(const WebShop& shop);

  struct Move {
    std::string thought{};
    std::string action{};
  };
  Move next() const;

  /// A move without thought: something that the page offers, or a search for the category.
  Move careless(RandomStream& random) const;

 private:
  Move search() const;
  /// As the offered actions have it: in lower case.
  std::string asin() const;
  /// An option that is still to be chosen.
  std::optional<std::pair<std::string, std::string>> missing_option() const;

  const WebShop& shop_;
  std::string query_{};
  std::vector<std::pair<std::string, std::string>> options_{};  // of the product: name and value
};

}  // namespace carnot
