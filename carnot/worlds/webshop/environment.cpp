#include "carnot/worlds/webshop/environment.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/worlds/python/python_text.h"

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

constexpr std::string_view kTranscriptInstruction =
    "Buy what is asked for in an online shop. Answer each page with <think>your thoughts</think><action>one "
    "action</action>: search[words] on the search page, click[text] with a text of the page on any other.";

constexpr std::size_t kUnparsedCharacters = 20;

std::string admissible_lines(const WebShop& shop) {
  std::string lines;
  const auto add = [&](const std::string& action) { lines += (lines.empty() ? "'" : "\n'") + action + "',"; };
  if (shop.has_search_bar()) add("search[<your query>]");
  for (const std::string& text : shop.clickables()) add("click[" + text + "]");
  return lines;
}

}  // namespace

VerlAgentShop::VerlAgentShop(WebShop shop, const VerlAgentShopOptions& options)
    : shop_(std::move(shop)), options_(options) {}

Protocol VerlAgentShop::protocol() const {
  return {
      .action_tags = {"action"}, .max_turns = options_.max_turns, .max_response_tokens = options_.max_response_tokens};
}

Opening VerlAgentShop::open() {
  if (!options_.transcript) return {.user = prompt()};
  return {.system = std::string(kTranscriptInstruction), .user = whole_page()};
}

/// With the instruction, in lower case, a text per line.
std::string VerlAgentShop::whole_page() const { return python_lower(join(shop_.texts(), "\n")); }

std::string VerlAgentShop::shown_page() const {
  const auto texts = shop_.texts();
  const auto task = std::ranges::find(texts, stripped(shop_.goal().instruction));
  std::string shown;
  for (auto text = task == texts.end() ? texts.begin() : task + 1; text != texts.end(); ++text)
    shown += (shown.empty() ? "'" : " [SEP] '") + *text + "'";
  return shown;
}

PlainView VerlAgentShop::plain_view() const {
  std::string possible = shop_.has_search_bar() ? "search[words]" : "";
  for (const std::string& text : shop_.clickables())
    possible += (possible.empty() ? "click[" : ", click[") + text + "]";
  return {.task = "You are in an online shop. Your task is to: " + std::string(stripped(shop_.goal().instruction)),
          .actions = "search[words] where there is a search bar, and click[text] with a text that an observation lists",
          .observation = shown_page() + "\nPossible actions: " + possible};
}

// The published texts differ in a blank before the first line's end.
std::string VerlAgentShop::prompt_with(std::string_view history) const {
  const std::string page = shown_page();
  std::string text = "\nYou are an expert autonomous agent operating in the WebShop e\u2011commerce environment.";
  text += (history.empty() ? " " : "");
  text += "\nYour task is to: " + std::string(stripped(shop_.goal().instruction)) + ".\n";
  if (history.empty()) {
    text += "Your current observation is: " + page + ".\n";
  } else {
    const std::size_t remembered = std::min(steps_.size(), static_cast<std::size_t>(options_.history_length));
    text += "Prior to this step, you have already taken " + std::to_string(steps_.size()) +
            " step(s). Below are the most recent " + std::to_string(remembered) +
            " observations and the corresponding actions you took: " + std::string(history) + "\nYou are now at step " +
            std::to_string(steps_.size() + 1) + " and your current observation is: " + page + ".\n";
  }
  return text + "Your admissible actions of the current situation are: \n[\n" + admissible_lines(shop_) +
         "\n].\n\nNow it's your turn to take one action for the current step.\nYou should first reason step-by-step "
         "about the current situation, then think carefully which admissible action best advances the shopping goal. "
         "This reasoning process MUST be enclosed within <think> </think> tags. \nOnce you've finished your reasoning, "
         "you should choose an admissible action for current step and present it within <action> </action> tags.\n";
}

std::string VerlAgentShop::prompt() const {
  const std::string history = verl_agent_memory(steps_, static_cast<std::size_t>(options_.history_length));
  std::string text = prompt_with(history);
  if (!history.empty() && count_characters(text) > static_cast<std::size_t>(options_.longest_prompt))
    return prompt_with("");
  return text;
}

Reply VerlAgentShop::step(const PolicyResponse& response) {
  CARNOT_CHECK(!done_, "the episode is over");
  const VerlAgentAction action = read_verl_agent_action(response.text, kUnparsedCharacters);
  steps_.push_back({.observation = shown_page(), .action = action.text});
  const GameStep played = shop_.step(action.text);
  valid_turns_ += action.valid ? 1 : 0;
  done_ = played.done || std::ssize(steps_) == options_.max_turns;

  Reply reply{.reward = played.success ? options_.reward : 0,
              .penalty = action.valid ? 0 : -options_.penalty,
              .valid_action = action.valid,
              .done = done_,
              .outcome = played.done ? Outcome::Finished : Outcome::OutOfTurns,
              .success = played.success};
  if (!done_) {
    reply.form = options_.transcript ? ReplyForm::UserMessage : ReplyForm::FreshPrompt;
    if (options_.transcript)
      reply.text = whole_page();
    else
      reply.prompt = {.user = prompt()};
    return reply;
  }
  reply.measures = shop_.measures();
  reply.measures["actions"] = static_cast<double>(steps_.size());
  reply.measures["valid_turns"] = static_cast<double>(valid_turns_) / static_cast<double>(steps_.size());
  return reply;
}

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
