#include "carnot/worlds/dataset/scoring.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "carnot/core/base/file.h"
#include "carnot/core/base/nearest_word.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

constexpr std::string_view kPython = "python", kJudge = "judge";

/// The recipe's list; without one the Python function, or exact_match.
std::vector<std::string> scorer_texts(const DatasetOptions& options) {
  if (!options.scorers.empty()) return options.scorers;
  return {options.reward.empty() ? "exact_match" : std::string(kPython)};
}

}  // namespace

Result<std::unique_ptr<Scoring>> Scoring::open(const DatasetOptions& options) {
  std::unique_ptr<Scoring> scoring(new Scoring(options));
  CARNOT_RETURN_IF_ERROR(scoring->make_scorers());
  CARNOT_RETURN_IF_ERROR(scoring->open_judge());
  return scoring;
}

bool Scoring::lists(std::string_view name) const {
  return std::any_of(weights_.begin(), weights_.end(), [&](const WeightedScorer& one) { return one.name == name; });
}

Status Scoring::make_scorers() {
  ScorerOptions scorer = options_.scorer;
  if (!options_.schema_file.empty()) {
    auto schema = read_file(options_.schema_file);
    if (!schema) return Error{"env.schema: " + schema.error().message};
    scorer.schema = std::move(schema).value();
  }
  for (const std::string& text : scorer_texts(options_)) {
    const auto weighted = parse_weighted_scorer(text);
    if (!weighted) return Error{"env.scorers: " + weighted.error().message};
    weights_.push_back(*weighted);
    scorers_.emplace_back();
    if (weighted->name == kPython || weighted->name == kJudge) continue;
    const ScorerEntry& entry = *std::find_if(scorers().begin(), scorers().end(),
                                             [&](const ScorerEntry& one) { return one.name == weighted->name; });
    CARNOT_ASSIGN_OR_RETURN(auto made, entry.make(scorer));
    scorers_.back() = std::move(made);
    needs_answer_ |= entry.needs_gold;
  }
  return Done{};
}

Status Scoring::open_judge() {
  const bool wanted = lists(kJudge);
  if (!wanted && !options_.judge.endpoint.url.empty())
    return Error{"env.judge: has no effect: env.scorers does not list 'judge'"};
  if (!wanted) return Done{};
  CARNOT_ASSIGN_OR_RETURN(auto judge, Judge::open(options_.judge));
  judge_ = std::move(judge);
  needs_answer_ |= judge_->needs_answer();
  return Done{};
}

Status Scoring::start_python(const DatasetRow& row) {
  const bool wanted = lists(kPython);
  if (options_.reward.empty() && !options_.reward_weights.empty())
    return Error{"env.reward_weights: has no effect without env.reward"};
  if (!wanted && !options_.reward.empty())
    return Error{"env.reward: has no effect: env.scorers does not list 'python'"};
  if (!wanted) return Done{};
  CARNOT_ASSIGN_OR_RETURN(auto python, PythonReward::start({.functions = options_.reward,
                                                            .weights = options_.reward_weights,
                                                            .python = options_.python,
                                                            .timeout = options_.timeout},
                                                           row));
  python_ = std::move(python);
  return Done{};
}

Reply Scoring::grade(const DatasetRow& row, const PolicyResponse& response) const {
  ScoredResponse scored{.response = response.text,
                        .answer = answer_at(options_.answer_in, response.text, options_.answer_tag),
                        .golds = row.answers};
  Reply reply;
  for (std::size_t s = 0; s < weights_.size(); ++s) {
    if (weights_[s].name == kPython) continue;
    reply.measures[weights_[s].name] = scorers_[s] ? scorers_[s]->score(scored) : judge_->score(row, scored.response);
  }
  reply.valid_action = scored.answer && !scored.answer->empty();
  if (reply.valid_action) reply.answer = std::move(scored.answer);
  if (python_)
    reply.unscored = response.text;
  else
    add_up(reply);
  return reply;
}

void Scoring::score_group(const DatasetRow& row, std::span<Reply> last_replies) const {
  std::vector<std::string> responses;
  for (const Reply& reply : last_replies) responses.push_back(*reply.unscored);
  const std::vector<PythonScore> scores = python_->scores(row, responses);
  for (std::size_t i = 0; i < last_replies.size(); ++i) {
    Reply& reply = last_replies[i];
    if (scores[i].value) {
      reply.measures[std::string(kPython)] = *scores[i].value;
      for (const auto& [name, value] : scores[i].parts) reply.measures[std::string(kPython) + "/" + name] = value;
      add_up(reply);
    } else {
      reply.outcome = Outcome::InfraFailed;
      reply.text = "env.reward: " + scores[i].problem;
    }
  }
}

void Scoring::add_up(Reply& reply) const {
  for (const WeightedScorer& one : weights_) reply.reward += one.weight * reply.measures.at(one.name);
  reply.success = reply.measures.at(weights_.front().name) >= options_.success_at;
}

Result<WeightedScorer> parse_weighted_scorer(const std::string& text) {
  WeightedScorer out;
  std::string_view name = trim(text);
  if (const std::size_t star = name.find('*'); star != std::string_view::npos) {
    const std::string_view number = trim(name.substr(0, star));
    const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), out.weight);
    if (problem != std::errc{} || end != number.data() + number.size() || !std::isfinite(out.weight) ||
        std::abs(out.weight) > kLargestScorerWeight)
      return Error{"\"" + text + "\": expected a weight of at most a million before '*', as in \"0.5 * format\""};
    name = trim(name.substr(star + 1));
  }
  out.name = name;
  std::vector<std::string> known{std::string(kPython), std::string(kJudge)};
  for (const ScorerEntry& entry : scorers()) known.emplace_back(entry.name);
  if (std::find(known.begin(), known.end(), out.name) == known.end())
    return Error{unknown_word("scorer", out.name, known)};
  return out;
}

}  // namespace carnot
