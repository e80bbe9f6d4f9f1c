#include "carnot/worlds/webshop/environment.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

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
    reply.form = ReplyForm::FreshPrompt;
    reply.prompt = {.user = prompt()};
    return reply;
  }
  reply.measures = shop_.measures();
  reply.measures["actions"] = static_cast<double>(steps_.size());
  reply.measures["valid_turns"] = static_cast<double>(valid_turns_) / static_cast<double>(steps_.size());
  return reply;
}

}  // namespace carnot
