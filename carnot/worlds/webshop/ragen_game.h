// worlds/webshop/ragen_game.h -- WebShop as RAGEN shows it: the page, advice for shoppers and the actions to choose
// from; a purchase earns 1 or nothing.
#pragma once

#include "carnot/worlds/ragen/conversation.h"
#include "carnot/worlds/webshop/game.h"

namespace carnot {

class RagenWebShop final : public Game {
 public:
  explicit RagenWebShop(WebShop shop) : shop_(std::move(shop)) {}

  std::string board_json() const override { return shop_.board_json(); }
  std::vector<ShownMember> members() const override { return shop_.members(); }
  std::map<std::string, double> measures() const override { return shop_.measures(); }
  std::string observation() const override;
  GameStep step(std::string_view action) override;
  std::string anchor() const override { return shop_.anchor(); }
  std::unique_ptr<Game> clone() const override { return std::make_unique<RagenWebShop>(*this); }

  const WebShop& shop() const { return shop_; }

 private:
  WebShop shop_;
  bool fresh_ = true;  // no action yet: the instruction alone is shown
};

/// The instruction of RAGEN's system message. Any text counts as an action.
RagenText ragen_webshop_text();

}  // namespace carnot
