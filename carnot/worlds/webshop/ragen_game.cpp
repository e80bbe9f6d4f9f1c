#include "carnot/worlds/webshop/ragen_game.h"

#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

// As the paper prints it; later versions of RAGEN break the line between "times." and "Almost".
constexpr std::string_view kAdvice =
    "We must buy a product within 10 actions. It doesn't have to match perfectly with description.\n"
    "Search term should not include details like size, color.\n"
    "Never search for more than 2 times.\n"
    "Do not be too strict about the description, it's more important to buy one that is close enough within action "
    "limit.\n"
    "Prioritize click a product in the current page over going to next page.\n"
    "Almost never click[next >] for more than 2 times.Almost never click[< prev] unless you are sure the product is on "
    "one of the previous pages.\n"
    "If you have less than 3 actions left, just buy the first product you see in the current page.\n"
    "If an matching option exists, make sure to click[size] then click[color], one at a time, before click[buy now], "
    "but don't have to if only 1 action left, in that case you just click[buy now]. Never click description.";

constexpr std::string_view kShopInstruction =
    "You are browsing an online shop. Based on the instruction, buy a product that close to the production "
    "description. You need to search, read the search results, pick a product, choose the size and color and buy. You "
    "should only choose action from the available actions list provided later.  Example process: I need a gingko light "
    "and 20x20 pillow cover that is hand painted. First search[gingko light 20x20 pillow cover hand painted], answer "
    "format: <answer>search[blanket with fleece throw]</answer>. Valid answer is search[<keywords>] or "
    "click[<clickable>].";

std::vector<std::string> offered_actions(const WebShop& shop) {
  std::vector<std::string> actions;
  if (shop.has_search_bar()) actions.emplace_back("search[<content>]");
  for (const std::string& text : shop.clickables())
    if (text != "search") actions.push_back("click[" + text + "]");
  const std::vector<std::string> kEndOfResults = {"click[back to search]", "click[< prev]", "click[next >]"};
  if (actions == kEndOfResults) actions.pop_back();
  return actions;
}

}  // namespace

std::string RagenWebShop::observation() const {
  const std::string page = fresh_ ? "Instruction: " + shop_.goal().instruction : shop_.observation();
  return page + "." + std::string(kAdvice) + "\n You must choose from these actions:" + join(offered_actions(shop_)) +
         ".";
}

GameStep RagenWebShop::step(std::string_view action) {
  GameStep result = shop_.step(action);
  fresh_ = false;
  result.observation = observation();
  result.reward.value = result.reward.value >= 1 ? 1 : 0;
  return result;
}

RagenText ragen_webshop_text() { return {.instruction = std::string(kShopInstruction)}; }

}  // namespace carnot
