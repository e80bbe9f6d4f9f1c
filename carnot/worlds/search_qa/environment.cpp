#include "carnot/worlds/search_qa/environment.h"

#include <algorithm>
#include <numeric>

#include "carnot/core/base/check.h"
#include "carnot/core/base/limits.h"
#include "carnot/worlds/reward/answer_metrics.h"
#include "carnot/worlds/search_qa/protocol.h"

namespace carnot {
namespace {

constexpr std::string_view kSystem = "Search for facts , then answer .";

}  // namespace

void SearchQaOptions::fields(FieldVisitor& visit) {
  world.fields(visit);
  visit.field("train_worlds", train_worlds, "worlds that training tasks are about", between(1, 100000));
  visit.field("held_out_worlds", held_out_worlds, "worlds that validation tasks are about", between(1, 100000));
  visit.field("held_out_names", held_out_names,
              "names of held-out worlds are in no training world: for models with a vocabulary of their own");
  visit.field("hop_shares", hop_shares, "shares of questions with 1, 2 and 3 hops", at_least(0));
  visit.field("demonstrated_shares", demonstrated_shares,
              "the same of demonstrations; empty: as tasks. With fewer hops, training has to generalize", at_least(0));
  visit.field("passages", passages, "passages shown for a search", between(1, kMaxEpisodeSteps));
  visit.field("max_searches", max_searches, "searches per episode", between(1, kMaxEpisodeSteps));
  visit.field("max_response_tokens", max_response_tokens, "tokens of one response", between(1, kMaxResponseTokens));
  enum_field(visit, "reward", reward, {"exact_match", "f1"}, "what an answer of valid format earns");
  visit.field("format_reward", format_reward, "reward where the format is broken");
  section(visit, "demonstration", demonstration, "the scripted agent of SFT");
}

std::vector<std::string> SearchQaOptions::problems() const {
  auto found = world.problems();
  if (held_out_names && !world.has_names_for(2))
    found.push_back("env.held_out_names: there are not so many names; expected at most " +
                    std::to_string(kMostNames / 3) + " of each kind in a world");
  const auto check_shares = [&](const std::string& key, const std::vector<double>& shares) {
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    if (shares.empty() || shares.size() > kMostHops || sum <= 0)
      found.push_back("env." + key + ": expected one to three shares, not all 0, got " + std::to_string(shares.size()) +
                      " with sum " + std::to_string(sum));
  };
  check_shares("hop_shares", hop_shares);
  if (!demonstrated_shares.empty()) check_shares("demonstrated_shares", demonstrated_shares);
  return found;
}

SearchQa::SearchQa(SearchTask task, const SearchQaOptions& options)
    : task_(std::move(task)),
      passages_(options.passages),
      max_searches_(options.max_searches),
      max_response_tokens_(options.max_response_tokens),
      reward_(options.reward),
      format_reward_(options.format_reward) {}

Protocol SearchQa::protocol() const {
  return {.stop_strings = {std::string(kSearchClose)},
          .think_tag = "think",
          .action_tags = {"search", "answer"},
          .max_turns = max_searches_ + 1,
          .max_response_tokens = max_response_tokens_};
}

Opening SearchQa::open() { return {.system = std::string(kSystem), .user = task_.question.text}; }

Reply SearchQa::step(const PolicyResponse& response) {
  CARNOT_CHECK(!done_, "the episode is over");
  message_ += response.text;
  const SearchResponse asked = parse_search_response(response.text);
  if (asked.action == SearchAction::Answer) return finish(Outcome::Finished, asked.text);
  if (asked.action == SearchAction::None) return finish(Outcome::Unparsable, "");
  if (searches_left() == 0) return finish(Outcome::OutOfTurns, "");
  return search(asked.text);
}

Reply SearchQa::search(std::string_view query) {
  ++searches_;
  found_ = task_.world->search(query, passages_);
  for (int number : found_) {
    const auto at = std::ranges::lower_bound(seen_, number);
    if (at == seen_.end() || *at != number) seen_.insert(at, number);
  }
  Reply reply;
  reply.text = search_result(format_passages(*task_.world, found_));
  reply.form = ReplyForm::Inline;
  reply.tool = "search";
  reply.status = found_.empty() ? "empty" : "ok";
  message_ += reply.text;
  return reply;
}

Reply SearchQa::finish(Outcome outcome, std::string_view answer) {
  done_ = true;
  const auto golds = ground_truth();
  const std::string prediction = boxed_content(answer).value_or(std::string(answer));
  const bool answered = outcome == Outcome::Finished;
  const bool right = answered && exact_match(prediction, golds);
  const double f1 = answered ? answer_f1(prediction, golds) : 0;
  const bool well_formed = format_problem(message_).empty();

  Reply reply;
  reply.done = true;
  reply.outcome = outcome;
  reply.valid_action = outcome != Outcome::Unparsable;
  reply.success = well_formed && right;
  reply.reward = !well_formed ? format_reward_ : reward_ == AnswerReward::F1 ? f1 : right;
  reply.measures = {{"exact_match", right},
                    {"f1", f1},
                    {"format", well_formed},
                    {"searches", searches_},
                    {"hops", task_.question.hops()}};
  if (std::string vote = normalize_answer(prediction); answered && !vote.empty()) reply.answer = std::move(vote);
  return reply;
}

std::string SearchQa::anchor() const {
  std::string key = task_.world_name + " | " + task_.question.text + " |";
  for (int number : seen_) key += " " + std::to_string(number);
  return key;
}

std::map<std::string, std::string> SearchQa::info() const {
  return {
      {"question", task_.question.text}, {"hops", std::to_string(task_.question.hops())}, {"world", task_.world_name}};
}

}  // namespace carnot
