// rollout/answer_scores.h -- how likely a group's answer is after its prompt and after each turn, asked of the engine
// while the group is rolled out.
//
// A context is asked about when the turn after it has its first token: all of it is computed then, and the answer
// needs rows of its own only, in the forwards that others decode in. The numbers have the bits of a pass over the
// finished trajectories (info_gain.h), where the model is batch-invariant.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "carnot/core/rollout/answer_prompt.h"
#include "carnot/core/rollout/info_gain.h"
#include "carnot/core/rollout/member.h"
#include "carnot/core/rollout/rollout_context.h"

namespace carnot {

class AnswerScores {
 public:
  /// Nothing is asked where the options do not say so.
  AnswerScores(RolloutContext& context, int group) : context_(context), group_(group) {}

  /// The group's answer. One that cannot be tokenised is left to info_gain.h, which says so.
  void open(const std::vector<std::string>& ground_truth);

  /// The member's present turn is about to get its first token: asks after the turn before it, or after the prompt,
  /// unless that was done. REQUIRES: `members` holds it and those that it grew from.
  void ask(Member& member, std::span<const std::unique_ptr<Member>> members);

  /// Members' prompts differ, so that the group's is no longer one: nothing more is asked, nothing is written.
  void give_up();

  void on_score(const ScoredAnswer& scored, std::span<const std::unique_ptr<Member>> members);

  /// Something that was asked has no answer yet.
  bool waits() const { return !pending_.empty(); }
  /// Ends what waits.
  void abandon();

  /// Information gains of the group's trees, whose turns are numbered as `log_probs`; nothing if a number is
  /// missing.
  void write(Group& group, std::vector<std::vector<std::optional<double>>> turns) const;

 private:
  /// A turn that a member made; -1: the prompt.
  struct Asked {
    int member = -1;
    int made_turn = -1;
  };

  RolloutContext& context_;
  int group_;
  std::optional<AnswerPrompt> answer_{};
  bool prompt_asked_ = false;
  std::optional<double> prompt_log_prob_{};
  std::map<SequenceId, Asked> pending_{};
};

}  // namespace carnot
