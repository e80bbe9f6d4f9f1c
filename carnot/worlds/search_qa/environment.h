// worlds/search_qa/environment.h -- questions of one to three hops over an invented world, answered with a search tool.
//
// The protocol of ARPO and A2TGPO (worlds/search_qa/protocol.h): one assistant message; a search stops the response,
// its result continues the message; a boxed answer ends it. Reward: -1 for a broken format, else whether (or how far)
// the boxed answer is right.
//
// The training tasks' worlds and the validation tasks' worlds are different ones.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carnot/core/env/environment.h"
#include "carnot/worlds/search_qa/demonstrator.h"
#include "carnot/worlds/search_qa/world.h"

namespace carnot {

enum class AnswerReward : std::uint8_t { ExactMatch, F1 };

struct SearchQaOptions {
  SearchWorldOptions world{};
  int train_worlds = 64;
  int held_out_worlds = 16;
  bool held_out_names = false;                    ///< held-out worlds share no name with training worlds
  std::vector<double> hop_shares{0.4, 0.4, 0.2};  ///< of questions with 1, 2, 3 hops
  std::vector<double> demonstrated_shares{};      ///< of demonstrations; empty: as hop_shares
  int passages = 2;                               ///< shown for a search
  int max_searches = 6;
  int max_response_tokens = 64;
  AnswerReward reward = AnswerReward::ExactMatch;
  double format_reward = -1;  ///< reward where the format is broken
  SearchDemonstrationOptions demonstration{};

  void fields(FieldVisitor& visit);
  std::vector<std::string> problems() const;
};

/// A question and the world that it is about.
struct SearchTask {
  std::shared_ptr<const SearchWorld> world{};
  std::string world_name{};  ///< "train 3"
  Question question{};

  const std::string& answer() const { return world->name(question.answer()); }
};

class SearchQa : public Environment {
 public:
  SearchQa(SearchTask task, const SearchQaOptions& options);

  Protocol protocol() const override;
  Opening open() override;

  /// A search within the budget is answered inline. Ends with an answer (Finished), one search too many (OutOfTurns),
  /// or a response that is neither (Unparsable). Final measures: exact_match, f1, format, searches, hops.
  Reply step(const PolicyResponse& response) override;

  /// World, question and the set of passages seen so far, in whatever order.
  std::string anchor() const override;

  std::vector<std::string> ground_truth() const override { return {task_.answer()}; }
  std::map<std::string, std::string> info() const override;
  Branching branching() const override { return Branching::Cloned; }
  std::unique_ptr<Environment> clone() const override { return std::make_unique<SearchQa>(*this); }

  const SearchTask& task() const { return task_; }
  int searches() const { return searches_; }
  int searches_left() const { return max_searches_ - searches_; }
  /// What the last search found: numbers of passages, best first.
  const std::vector<int>& found() const { return found_; }

 private:
  Reply search(std::string_view query);
  Reply finish(Outcome outcome, std::string_view answer);

  SearchTask task_;
  int passages_;
  int max_searches_;
  int max_response_tokens_;
  AnswerReward reward_;
  double format_reward_;

  std::string message_{};  // the assistant's message so far
  std::vector<int> found_{};
  std::vector<int> seen_{};  // sorted, each once
  int searches_ = 0;
  bool done_ = false;
};

}  // namespace carnot
