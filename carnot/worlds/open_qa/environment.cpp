#include "carnot/worlds/open_qa/environment.h"

#include <algorithm>
#include <chrono>

#include "carnot/core/base/check.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/env/plain_view.h"
#include "carnot/worlds/open_qa/protocols.h"
#include "carnot/worlds/reward/answer_metrics.h"
#include "carnot/worlds/search_qa/protocol.h"

namespace carnot {
namespace {

/// The first `longest` characters; 0: all of them.
std::string first_characters(std::string text, int longest) {
  if (longest == 0) return text;
  std::size_t at = 0;
  for (int left = longest; left > 0 && at < text.size(); --left)
    at += static_cast<std::size_t>(first_character(std::string_view(text).substr(at)).length);
  text.resize(at);
  return text;
}

/// A question, its searches and its grade; the protocols derive from it.
class OpenQaEpisode : public Environment {
 public:
  OpenQaEpisode(std::shared_ptr<const OpenQaWorld> world, const DatasetRow& row)
      : world_(std::move(world)), row_(&row) {}

  std::vector<std::string> ground_truth() const override { return row_->answers; }
  std::map<std::string, std::string> info() const override { return row_->info; }
  Branching branching() const override { return Branching::Cloned; }

  /// The question and the passages seen so far, in whatever order.
  std::string anchor() const override {
    std::string key = row_->question + " |";
    for (const std::string& id : seen_) key += " " + id;
    return key;
  }

 protected:
  const OpenQaOptions& options() const { return world_->options; }
  const std::string& question() const { return row_->question; }

  Protocol protocol_with(std::vector<std::string> stop_strings, int max_turns) const {
    return {.stop_strings = std::move(stop_strings),
            .think_tag = "think",
            .action_tags = {"search", "answer"},
            .max_turns = max_turns,
            .max_response_tokens = options().max_response_tokens};
  }

  void begin_step() {
    CARNOT_CHECK(!done_, "the episode is over");
    ++turns_;
  }

  RetrievedPassages search(std::string_view query) {
    ++searches_;
    const std::vector<std::string> queries{std::string(query)};
    const auto time = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(options().timeout));
    auto found =
        world_->retriever->retrieve(queries, options().passages, std::chrono::steady_clock::now() + time).at(0);
    for (const RetrievedPassage& passage : found) {
      const auto at = std::ranges::lower_bound(seen_, passage.id);
      if (at == seen_.end() || *at != passage.id) seen_.insert(at, passage.id);
    }
    return found;
  }

  std::string shown(std::string result) const { return first_characters(std::move(result), options().longest_result); }

  Reply searched(std::string text, ReplyForm form, const RetrievedPassages& found) const {
    Reply reply;
    reply.text = std::move(text);
    reply.form = form;
    reply.tool = "search";
    reply.status = found.empty() ? "empty" : "ok";
    return reply;
  }

  /// Grades `answer`; `answered`: there is one. The protocol sets the reward from it.
  Reply finish(Outcome outcome, bool answered, const std::string& answer, bool well_formed) {
    done_ = true;
    const auto& golds = row_->answers;
    right_ = answered && exact_match(answer, golds);
    const double f1 = answered ? answer_f1(answer, golds) : 0;
    const bool contained = answered && contains_answer(answer, golds);
    Reply reply;
    reply.done = true;
    reply.outcome = outcome;
    reply.valid_action = outcome != Outcome::Unparsable;
    reply.success = right_;
    switch (options().reward) {
      case QaReward::ExactMatch: reply.reward = right_; break;
      case QaReward::F1: reply.reward = f1; break;
      case QaReward::Contains: reply.reward = contained; break;
    }
    reply.measures = {
        {"exact_match", right_}, {"f1", f1}, {"contains", contained}, {"format", well_formed}, {"searches", searches_}};
    if (std::string vote = normalize_answer(answer); answered && !vote.empty()) reply.answer = std::move(vote);
    return reply;
  }

  int turns_ = 0;
  int searches_ = 0;

 private:
  std::shared_ptr<const OpenQaWorld> world_;
  const DatasetRow* row_;
  std::vector<std::string> seen_{};  // ids, sorted, each once
  bool right_ = false;
  bool done_ = false;
};

class SearchR1Episode final : public OpenQaEpisode {
 public:
  using OpenQaEpisode::OpenQaEpisode;

  Protocol protocol() const override {
    return protocol_with({std::string(kSearchClose), std::string(kAnswerClose)}, options().searches() + 1);
  }
  Opening open() override { return {.user = search_r1_prompt(question())}; }
  std::unique_ptr<Environment> clone() const override { return std::make_unique<SearchR1Episode>(*this); }

  Reply step(const PolicyResponse& response) override {
    begin_step();
    const std::string_view cut = search_r1_cut(response.text);
    message_ += cut;
    const SearchResponse asked = search_r1_action(cut);
    if (asked.action == SearchAction::Answer) return grade(Outcome::Finished);
    if (turns_ > options().searches()) return grade(Outcome::OutOfTurns);
    if (asked.action == SearchAction::Search) {
      const auto found = search(asked.text);
      const std::string text = search_r1_information(shown(std::string(stripped(search_r1_passages(found)))));
      message_ += text;
      return searched(text, ReplyForm::Inline, found);
    }
    Reply reply{.text = std::string(search_r1_reproach()), .form = ReplyForm::Inline};
    reply.valid_action = false;
    message_ += reply.text;
    return reply;
  }

 private:
  Reply grade(Outcome outcome) {
    const TaggedAnswer answer = last_tagged_answer(message_);
    const bool well_formed = is_search_r1_format(message_);
    Reply reply = finish(outcome, answer.found, std::string(answer.text), well_formed);
    if (options().format_scores) {
      constexpr double kForm = 0.2, kAnswerTag = 0.1;
      if (reply.success)
        reply.reward = well_formed ? 1 : 1 - kForm;
      else
        reply.reward = well_formed ? kForm : answer.found ? kAnswerTag : 0;
    }
    return reply;
  }

  std::string message_{};  // the assistant's message so far
};

class ArpoEpisode final : public OpenQaEpisode {
 public:
  using OpenQaEpisode::OpenQaEpisode;

  Protocol protocol() const override { return protocol_with({std::string(kSearchClose)}, options().searches() + 1); }
  Opening open() override { return {.system = std::string(arpo_search_prompt()), .user = question()}; }
  std::unique_ptr<Environment> clone() const override { return std::make_unique<ArpoEpisode>(*this); }

  Reply step(const PolicyResponse& response) override {
    begin_step();
    message_ += response.text;
    const SearchResponse asked = parse_search_response(response.text);
    if (asked.action == SearchAction::Answer) return grade(Outcome::Finished, asked.text);
    if (asked.action == SearchAction::None) return grade(Outcome::Unparsable, "");
    if (searches_ == options().searches()) return grade(Outcome::OutOfTurns, "");
    const auto found = search(asked.text);
    const std::string text = search_result(shown(arpo_passages(found)));
    message_ += text;
    return searched(text, ReplyForm::Inline, found);
  }

 private:
  Reply grade(Outcome outcome, std::string_view answer) {
    const bool well_formed = format_problem(message_).empty();
    Reply reply =
        finish(outcome, outcome == Outcome::Finished, boxed_content(answer).value_or(std::string(answer)), well_formed);
    if (!well_formed) {
      reply.reward = options().format_reward;
      reply.success = false;
    }
    return reply;
  }

  std::string message_{};
};

class VerlAgentSearchEpisode final : public OpenQaEpisode, public PlainlyShown {
 public:
  using OpenQaEpisode::OpenQaEpisode;

  Protocol protocol() const override {
    return protocol_with({std::string(kSearchClose), std::string(kAnswerClose)}, options().searches() + 1);
  }
  Opening open() override { return {.user = prompt()}; }
  std::unique_ptr<Environment> clone() const override { return std::make_unique<VerlAgentSearchEpisode>(*this); }

  PlainView plain_view() const override {
    return {.task = question(), .observation = steps_.empty() ? "" : found_last_};
  }

  /// The last observation, as verl-agent has it, and the question.
  std::string anchor() const override {
    return question() + " | " + (steps_.empty() ? std::string() : steps_.back().information);
  }

  Reply step(const PolicyResponse& response) override {
    begin_step();
    VerlAgentSearchAction action = read_verl_agent_search(response.text);
    valid_ = valid_ && action.valid;
    chat_ += action.text;
    const bool answers = action.text.starts_with(kAnswerOpen);
    if (answers || turns_ > options().searches()) return grade(answers, action.valid);
    Reply reply;
    SearchStep done{.action = action.text};
    if (action.text.starts_with(kSearchOpen)) {
      const auto query = std::string_view(action.text).substr(kSearchOpen.size());
      const auto found = search(query.substr(0, query.size() - kSearchClose.size()));
      done.information = shown(verl_agent_information(found));
      found_last_ = shown(std::string(stripped(search_r1_passages(found))));
      reply = searched("", ReplyForm::FreshPrompt, found);
      chat_ += done.information;
    }
    reply.form = ReplyForm::FreshPrompt;
    reply.valid_action = action.valid;
    reply.penalty = action.valid ? 0 : -options().penalty;
    steps_.push_back(std::move(done));
    reply.prompt = {.user = prompt()};
    return reply;
  }

 private:
  std::string prompt() const {
    return verl_agent_search_prompt(question(), steps_, static_cast<std::size_t>(options().history_length));
  }

  Reply grade(bool answers, bool valid) {
    const TaggedAnswer answer = last_tagged_answer(chat_);
    Reply reply =
        finish(answers ? Outcome::Finished : Outcome::OutOfTurns, answer.found, std::string(answer.text), valid_);
    reply.valid_action = valid;
    reply.penalty = valid ? 0 : -options().penalty;
    return reply;
  }

  std::vector<SearchStep> steps_{};
  std::string found_last_{};  // without JSON and tags, for plain_view()
  std::string chat_{};        // actions and what they were answered with
  bool valid_ = true;
};

}  // namespace

std::unique_ptr<Environment> make_open_qa_episode(std::shared_ptr<const OpenQaWorld> world, const DatasetRow& row) {
  switch (world->options.protocol) {
    case QaProtocol::Arpo: return std::make_unique<ArpoEpisode>(std::move(world), row);
    case QaProtocol::VerlAgent: return std::make_unique<VerlAgentSearchEpisode>(std::move(world), row);
    case QaProtocol::SearchR1: break;
  }
  return std::make_unique<SearchR1Episode>(std::move(world), row);
}

void split_joined_answers(DatasetRow& row) {
  std::vector<std::string> answers;
  for (const std::string& joined : row.answers)
    for (std::string& answer : split_gold_answers(joined))
      if (!answer.empty()) answers.push_back(std::move(answer));
  row.answers = std::move(answers);
}

}  // namespace carnot
