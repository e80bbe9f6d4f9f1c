#include "carnot/core/rollout/answer_scores.h"

#include <utility>

#include "carnot/core/base/statistics.h"

namespace carnot {

void AnswerScores::open(const std::vector<std::string>& ground_truth) {
  const auto& options = context_.options.answer_scoring;
  if (!options || ground_truth.empty() || ground_truth.front().empty()) return;
  if (auto answer = AnswerPrompt::of(context_.chat.tokenizer(), options->lead, ground_truth.front()))
    answer_ = std::move(answer).value();
}

void AnswerScores::ask(Member& member, std::span<const std::unique_ptr<Member>> members) {
  if (!answer_) return;
  Asked asked;
  if (member.num_turns() == 0) {
    if (std::exchange(prompt_asked_, true)) return;
  } else {
    const int before = member.num_turns() - 1;
    Member* maker = &member;
    while (before < maker->shared_turns) maker = members[static_cast<std::size_t>(maker->parent)].get();
    asked = {.member = maker->sibling, .made_turn = before - maker->shared_turns};
    if (std::exchange(maker->turns[static_cast<std::size_t>(asked.made_turn)].answer_asked, true)) return;
  }
  const auto context = context_.engine.tokens(member.sequence).first(static_cast<std::size_t>(member.turn_begin));
  const auto lead = answer_->lead_after(text_at_end(context_.chat.tokenizer(), context, answer_->bytes_read()));
  const auto tokens = answer_->tokens();
  const SequenceId sequence = context_.engine.score(member.sequence, member.turn_begin,
                                                    {.lead = {lead.begin(), lead.end()},
                                                     .answer = {tokens.begin(), tokens.end()},
                                                     .temperature = context_.options.sampling.temperature});
  context_.claim(sequence, {.group = group_, .member = member.sibling});
  pending_[sequence] = asked;
}

void AnswerScores::give_up() {
  abandon();
  answer_.reset();
}

void AnswerScores::on_score(const ScoredAnswer& scored, std::span<const std::unique_ptr<Member>> members) {
  const auto found = pending_.find(scored.sequence);
  const Asked asked = found->second;
  pending_.erase(found);
  if (scored.log_probs.empty()) return;
  const std::vector<double> log_probs(scored.log_probs.begin(), scored.log_probs.end());
  auto& place = asked.member < 0 ? prompt_log_prob_
                                 : members[static_cast<std::size_t>(asked.member)]
                                       ->turns[static_cast<std::size_t>(asked.made_turn)]
                                       .answer_log_prob;
  place = mean(log_probs);
}

void AnswerScores::abandon() {
  for (const auto& [sequence, asked] : pending_) context_.engine.release(sequence);
  pending_.clear();
}

void AnswerScores::write(Group& group, std::vector<std::vector<std::optional<double>>> turns) const {
  if (!answer_) return;
  (void)write_info_gain(group, {.prompt = prompt_log_prob_, .turns = std::move(turns)},
                        context_.options.answer_scoring->gain);
}

}  // namespace carnot
