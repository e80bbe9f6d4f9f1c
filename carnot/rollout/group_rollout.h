// rollout/group_rollout.h -- the trajectories of one task while they are made: a state machine that roll_out() drives.
//
// Every trajectory (member) goes through: open an environment of its own; sample a response; perhaps wait at a gate,
// where the branch policy is asked; the environment's answer; the next turn or the end. When no member is active, the
// group spends what is left of its budget.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "carnot/env/environment_workers.h"
#include "carnot/rollout/member.h"
#include "carnot/rollout/rollout.h"

namespace carnot {

/// Whose event it is. Member -1: the group's own.
struct Owner {
  int group = -1;
  int member = -1;

  std::int64_t tag() const { return (static_cast<std::int64_t>(group) << 32) + member + 1; }
  static Owner of(std::int64_t tag) { return {static_cast<int>(tag >> 32), static_cast<int>(tag & 0xffffffff) - 1}; }
};

/// What all groups of one rollout share.
struct RolloutContext {
  Engine& engine;
  const ChatFamily& chat;
  const BranchPolicy& policy;
  const RolloutOptions& options;
  const RolloutKey& key;
  EnvironmentWorkers& workers;
  EnvironmentWorkers& copier;  ///< for copies of environments, which the caller waits for
  const RolloutEvents& events;
  bool stopped = false;         ///< events.go_on() said no
  std::vector<Owner> owners{};  ///< by SequenceId, of those that sample
  std::int64_t branches = 0;

  /// Asks, unless the answer was no before.
  bool may_continue() {
    stopped = stopped || !events.go_on();
    return !stopped;
  }

  void claim(SequenceId sequence, Owner owner) {
    if (owners.size() <= static_cast<std::size_t>(sequence)) owners.resize(static_cast<std::size_t>(sequence) + 1);
    owners[sequence] = owner;
  }
};

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
  void on_too_long(int member);
  void poll();  ///< takes the steps that several events together make possible

  bool finished() const { return finished_; }

  /// Trajectories that have ended; of a finished group all that it was to make.
  int num_ended() const;

  /// Infrastructure failures, a sentence each, by trajectory, whatever the order of events was.
  std::vector<std::string> failures() const;

  /// Gives back what it holds of the engine. Nothing can be taken from it any more.
  void abandon();

  /// The trees, numbered by trajectory and turn, whatever the order of events was. REQUIRES: finished().
  Group take_group();

 private:
  // group_rollout.cpp: one trajectory
  void on_opened(const FinishedCall& call);
  void on_opened(Member& member, const FinishedCall& call);
  void on_answer(Member& member);
  Member& add_member(Boundary from);
  void start(Boundary from);
  void start_context(Member& member, std::span<const TokenId> tokens);
  void own_sequence(Member& member, SequenceId sequence);
  void begin_turn(Member& member);
  void request_tokens(Member& member, int count);
  void end_response(Member& member);
  void ask_environment(Member& member);
  void close_turn(Member& member, const Answer& answer, const SpannedTokens& observation);
  void end(Member& member, Outcome outcome, const Reply& reply);
  void fail(Member& member, const std::string& why);
  void fail_all(Outcome outcome, const std::string& why);
  void report(int sibling, const std::string& where, const std::string& why);
  void measure_entropy(Member& member);

  // group_budget.cpp: how the budget is spent
  bool gates() const;
  void start_initial();
  void start_from_prompt(int tree, int parent);
  void decide();
  bool branches(Member& member, int attempt, int trajectories);
  void start_copy(Boundary from, const Episode& of);
  FinishedCall copy_environment_of(const Episode& episode, std::shared_ptr<Environment>& copy);
  Boundary boundary_at(const Member& member, Episode episode) const;
  std::optional<Boundary> boundary_of(Member& member);
  std::optional<Boundary> node_of(Member& member);
  void resume(Member& member);
  void spend_budget();
  EntropyProbe probe() const;
  void expand_trees();
  void keep_some_leaves();
  void finish();

  Member& at(int member) { return *members_[member]; }
  const Member& at(int member) const { return *members_[member]; }
  int size() const { return static_cast<int>(members_.size()); }
  int prompt_tokens() const { return static_cast<int>(first_->opening().tokens.size()); }
  DrawKey draw_key(std::string_view purpose, int sibling, int turn, int position) const;

  RolloutContext& context_;
  const RolloutTask& task_;
  int index_;
  int budget_;
  std::shared_ptr<OpenedEnvironment> opened_;
  std::optional<Episode> first_;      ///< at the prompt
  std::optional<Outcome> unstarted_;  ///< of every trajectory, where none could start
  std::vector<Failure> failures_{};
  SequenceId root_ = -1;
  bool root_prefilling_ = false;
  bool first_taken_ = false;  ///< a member has the environment that `first_` was opened with
  bool probing_ = false;
  bool finished_ = false;
  int num_trees_ = 0;
  int round_ = 0;   ///< of expansion
  int streak_ = 0;  ///< branches in a row, over the task
  std::optional<TreeExpansion> expansion_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<bool> dropped_;
  std::string copies_hang_;  ///< what a copy that did not come back left as message; no more are tried
};

}  // namespace carnot
