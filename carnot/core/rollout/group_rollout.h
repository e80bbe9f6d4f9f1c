// rollout/group_rollout.h -- the trajectories of one task while they are sampled: a state machine that roll_out()
// drives.
//
// Every trajectory (member) goes through: open its own environment; sample a response; perhaps wait at a gate,
// where the branch policy is asked; the environment's answer; the next turn or the end. When no member is active, the
// group spends what is left of its budget.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/env/environment_workers.h"
#include "carnot/core/rollout/answer_scores.h"
#include "carnot/core/rollout/group_budget.h"
#include "carnot/core/rollout/member.h"
#include "carnot/core/rollout/rollout_context.h"

namespace carnot {

/// An infrastructure failure. Sibling -1: the group's own.
struct Failure {
  int sibling = -1;
  std::string sentence{};
};

class GroupRollout {
 public:
  GroupRollout(RolloutContext& context, const RolloutTask& task, int index);

  void open();  ///< submits the environment's opening
  void on_call(int member, const FinishedCall& call);
  void on_token(int member, const SampledToken& sampled);
  void on_score(const ScoredAnswer& scored);
  void on_too_long(int member);
  void poll();  ///< takes the steps that need several events

  bool finished() const { return finished_; }

  /// Trajectories that have ended; for a finished group, all of its budget.
  int num_ended() const;

  /// Infrastructure failures, one sentence each, ordered by trajectory whatever the order of events.
  std::vector<std::string> failures() const;

  /// Releases its sequences in the engine. It has no results afterwards.
  void abandon();

  /// The trees, numbered by trajectory and turn whatever the order of events. REQUIRES: finished().
  Group take_group();

 private:
  // one trajectory
  void on_opened(const FinishedCall& call);
  void on_opened(Member& member, const FinishedCall& call);
  void on_answer(Member& member);
  void on_scored(const FinishedCall& call);
  Member& add_member(Boundary from);
  void start_context(Member& member, std::span<const TokenId> tokens);
  void continue_context(Member& member, std::span<const TokenId> observation);
  void own_sequence(Member& member, SequenceId sequence);
  void begin_turn(Member& member);
  void request_tokens(Member& member, int count);
  void end_response(Member& member);
  void ask_environment(Member& member);
  void close_turn(Member& member, const Answer& answer, const SpannedTokens& observation);
  bool score();
  void leave_sequence(Member& member);
  void end(Member& member, Outcome outcome, const Reply& reply);
  void fail(Member& member, const std::string& why);
  void fail_all(Outcome outcome, const std::string& why);
  void report(int sibling, const std::string& where, const std::string& why);
  void measure_entropy(Member& member);

  // where trajectories start
  void start(const Start& from);
  void start_from_prompt(int tree, int parent);
  void share_prompt(Member& member);
  void start_at(Boundary from);
  void decide();
  void resume(Member& member);
  Boundary boundary_at(const Member& member, Episode episode) const;
  std::optional<Boundary> boundary_of(Member& member);
  std::optional<Boundary> node_of(Member& member);
  void finish();

  // what trajectories are given instead of sampling it
  std::span<const TokenId> common_tokens();
  bool take_given(Member& member);
  void answered_otherwise(Member& member);

  Member& at(int member) { return *members_[member]; }
  const Member& at(int member) const { return *members_[member]; }
  int size() const { return static_cast<int>(members_.size()); }
  int prompt_tokens() const { return static_cast<int>(first_->opening().tokens.size()); }

  RolloutContext& context_;
  const RolloutTask& task_;
  int index_;
  GroupDraws draws_;
  GroupBudget budget_;
  EnvironmentCopies copies_;
  AnswerScores scores_;
  std::shared_ptr<OpenedEnvironment> opened_;
  std::optional<Episode> first_;      ///< at the prompt
  std::optional<Outcome> unstarted_;  ///< of every trajectory, if none could start
  std::vector<Failure> failures_{};
  std::vector<TokenId> given_tokens_{};  ///< the context and the begun response of task_.given
  SequenceId root_ = -1;
  bool root_prefilling_ = false;
  bool first_taken_ = false;  ///< a member has the environment that `first_` was opened with
  bool finished_ = false;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace carnot
