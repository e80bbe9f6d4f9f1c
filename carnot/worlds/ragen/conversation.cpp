#include "carnot/worlds/ragen/conversation.h"

#include <array>

#include "carnot/core/base/check.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/strings.h"
#include "carnot/worlds/ragen/action_table.h"

namespace carnot {
namespace {

constexpr std::string_view kThinkOpen = "<think>", kThinkClose = "</think>";
constexpr std::string_view kRagenAnswerOpen = "<answer>", kRagenAnswerClose = "</answer>";

std::string without_tags(std::string_view part) {
  constexpr std::array<std::string_view, 6> kTags = {kThinkOpen,        kThinkClose,    kRagenAnswerOpen,
                                                     kRagenAnswerClose, "<|im_start|>", "<|im_end|>"};
  std::string text(part);
  for (const auto tag : kTags) {
    std::string kept;
    std::size_t from = 0;
    for (auto at = text.find(tag); at != std::string::npos; at = text.find(tag, from)) {
      kept.append(text, from, at - from);
      from = at + tag.size();
    }
    text = kept + text.substr(from);
  }
  return std::string(trim(text));
}

}  // namespace

void RagenBudgets::fields(FieldVisitor& visit) {
  visit.field("max_turns", max_turns, "turns per episode", between(1, kMaxEpisodeSteps));
  visit.field("max_actions_per_turn", max_actions_per_turn, "actions that one answer may hold; the rest is ignored",
              between(1, kMaxEpisodeSteps));
  visit.field("max_actions", max_actions, "actions per episode", between(1, kMaxEpisodeSteps));
  visit.field("max_response_words", max_response_words, "response length that the prompt asks for",
              between(1, kMaxResponseTokens));
  visit.field("max_response_tokens", max_response_tokens, "tokens that a response may have",
              between(1, kMaxResponseTokens));
  visit.field("penalty", penalty, "taken off the score of a turn without a valid action, or with an unknown one",
              at_least(0));
}

RagenAnswer parse_ragen_answer(std::string_view response, int max_actions) {
  const auto open = response.find(kThinkOpen);
  if (open == std::string_view::npos) return {};
  const auto thought = open + kThinkOpen.size();
  for (auto close = response.find(kThinkClose, thought); close != std::string_view::npos;
       close = response.find(kThinkClose, close + 1)) {
    auto begin = response.find_first_not_of(" \t\n\r\f\v", close + kThinkClose.size());
    if (begin == std::string_view::npos || !response.substr(begin).starts_with(kRagenAnswerOpen)) continue;
    begin += kRagenAnswerOpen.size();
    const auto end = response.find(kRagenAnswerClose, begin);
    if (end == std::string_view::npos) return {};

    RagenAnswer answer{.thought = without_tags(response.substr(thought, close - thought)), .parsed = true};
    const std::string inside = without_tags(response.substr(begin, end - begin));
    for (std::size_t from = 0; from <= inside.size();) {
      const auto bar = std::min(inside.find("||", from), inside.size());
      const auto action = trim(std::string_view(inside).substr(from, bar - from));
      if (!action.empty() && static_cast<int>(answer.actions.size()) < max_actions) answer.actions.emplace_back(action);
      from = bar + 2;
    }
    return answer;
  }
  return {};
}

RagenConversation::RagenConversation(std::shared_ptr<const RagenText> text, const RagenBudgets& budgets,
                                     std::unique_ptr<Game> game, std::map<std::string, std::string> info)
    : text_(std::move(text)), budgets_(budgets), game_(std::move(game)), info_(std::move(info)) {}

std::unique_ptr<Environment> RagenConversation::clone() const {
  auto copy = std::make_unique<RagenConversation>(text_, budgets_, game_->clone(), info_);
  copy->turns_ = turns_;
  copy->valid_turns_ = valid_turns_;
  copy->actions_ = actions_;
  copy->effective_actions_ = effective_actions_;
  copy->done_ = done_;
  return copy;
}

Protocol RagenConversation::protocol() const {
  return {.max_turns = budgets_.max_turns, .max_response_tokens = budgets_.max_response_tokens};
}

Opening RagenConversation::open() {
  return {.system = system_message(), .user = turn_message(false), .assistant_prefix = std::string(kThinkOpen)};
}

std::string RagenConversation::system_message() const {
  std::string text = "You're a helpful assistant. " + text_->instruction;
  if (!text_->vocabulary.empty()) text += "\nThe meaning of each symbol in the state is:\n" + text_->vocabulary;
  if (!text_->actions.empty())
    text += "\nYour available actions are:\n" + join(text_->actions) + "\nYou can make up to " +
            std::to_string(budgets_.max_actions_per_turn) + " actions, separated by the action separator \" || \"\n";
  return text;
}

PlainView RagenConversation::plain_view() const {
  std::string task = text_->instruction;
  if (!text_->vocabulary.empty()) task += "\nThe meaning of each symbol in the state is:\n" + text_->vocabulary;
  return {.task = std::move(task),
          .actions = text_->actions.empty() ? "as the task describes them" : join(text_->actions),
          .observation = game_->observation()};
}

std::string RagenConversation::turn_message(bool warn) const {
  std::string text = "\nTurn " + std::to_string(turns_ + 1) + ":\nState:\n" + game_->observation() + "\n";
  if (warn) text += "No valid action provided previously. Environment state remains the same. Please try again.\n";
  return text + "You have " + std::to_string(actions_left()) +
         " actions left. Always output: <think> [Your thoughts] </think> <answer> [your answer] </answer> with no "
         "extra text. Strictly follow this format. Max response length: " +
         std::to_string(budgets_.max_response_words) + " words (tokens).\n";
}

RagenConversation::Played RagenConversation::play(const std::vector<std::string>& actions) {
  Played played;
  for (const auto& action : actions) {
    if (played.done || actions_left() == 0) break;
    const GameStep step = game_->step(action);
    ++actions_;
    effective_actions_ += step.effective ? 1 : 0;
    played.reward = played.reward + step.reward;
    played.done = step.done;
    played.success = step.success;
  }
  return played;
}

Reply RagenConversation::step(const PolicyResponse& response) {
  CARNOT_CHECK(!done_, "the episode is over");
  const RagenAnswer answer = parse_ragen_answer(response.text, budgets_.max_actions_per_turn);
  std::vector<std::string> valid;
  const std::vector<std::string_view> names(text_->actions.begin(), text_->actions.end());
  for (const auto& action : answer.actions)
    if (names.empty() || find_action(names, action)) valid.push_back(action);
  const bool all_valid = !valid.empty() && valid.size() == answer.actions.size();

  const Played played = play(valid);
  ++turns_;
  valid_turns_ += all_valid ? 1 : 0;
  done_ = played.done || actions_left() == 0 || turns_ == budgets_.max_turns;

  Reply reply{.reward = played.reward.value,
              .penalty = all_valid ? 0 : -budgets_.penalty,
              .valid_action = all_valid,
              .done = done_,
              .outcome = played.done ? Outcome::Finished : Outcome::OutOfTurns,
              .success = played.done && played.success};
  if (!done_) {
    reply.text = "Reward:\n" + python_number(played.reward) + "\n" + turn_message(valid.empty());
    return reply;
  }
  reply.measures = game_->measures();
  reply.measures["actions"] = actions_;
  reply.measures["effective_actions"] = actions_ > 0 ? static_cast<double>(effective_actions_) / actions_ : 0;
  reply.measures["valid_turns"] = static_cast<double>(valid_turns_) / turns_;
  return reply;
}

}  // namespace carnot
