// worlds/webshop/environment.h -- WebShop in verl-agent's protocol: each step is its own prompt, with a memory of
// the last steps. Or as a transcript: one conversation of bare pages.
//
// A response is `<think>...</think><action>click[buy now]</action>`. Success, buying something worth 1, earns
// `reward`; anything else nothing. A response that breaks the form is carried out as far as it can be read
// (worlds/verl_agent/step_prompt.h) and costs the penalty.
//
// And WebShop as RAGEN shows it: the page, advice for shoppers and the actions to choose from; a purchase earns 1 or
// nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carnot/core/env/environment.h"
#include "carnot/core/env/plain_view.h"
#include "carnot/worlds/ragen/conversation.h"
#include "carnot/worlds/verl_agent/step_prompt.h"
#include "carnot/worlds/webshop/game.h"

namespace carnot {

struct VerlAgentShopOptions {
  int max_turns = 15;
  int max_response_tokens = 512;
  int history_length = 2;       ///< past steps in a prompt
  int longest_prompt = 13'000;  ///< characters; a longer prompt goes without its history
  double reward = 10;
  double penalty = 0.1;
  bool transcript = false;  ///< one growing conversation of pages as the site shows them, in lower case
};

class VerlAgentShop final : public Environment, public PlainlyShown {
 public:
  VerlAgentShop(WebShop shop, const VerlAgentShopOptions& options);

  Protocol protocol() const override;
  Opening open() override;

  /// Measures at the end: "task_score" (what WebShop pays), "purchased", "actions" and "valid_turns" (a share).
  Reply step(const PolicyResponse& response) override;

  /// What the page shows, as verl-agent compares states: chosen options are not part of it.
  std::string anchor() const override { return shown_page(); }
  std::map<std::string, std::string> info() const override { return shop_.info(); }
  Branching branching() const override { return Branching::Cloned; }
  PlainView plain_view() const override;
  std::unique_ptr<Environment> clone() const override { return std::make_unique<VerlAgentShop>(*this); }

  const WebShop& shop() const { return shop_; }

 private:
  std::string prompt() const;
  std::string prompt_with(std::string_view history) const;
  std::string shown_page() const;
  std::string whole_page() const;

  WebShop shop_;
  VerlAgentShopOptions options_;
  std::vector<VerlAgentStep> steps_{};
  int valid_turns_ = 0;
  bool done_ = false;
};

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
