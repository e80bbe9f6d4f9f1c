// rollout/answer_scores.h -- how likely a group's answer is after its prompt and after each turn, measured by the
// engine during the rollout.
//
// An answer is scored after a context once the next turn has its first token: by then the whole context has been
// computed, and only the answer's own rows join the forward passes in which other sequences decode. If the model is
// batch-invariant, the numbers equal those of a pass over the finished trajectories (info_gain.h) bit for bit.
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
  /// Scores nothing unless the options ask for it.
  AnswerScores(RolloutContext& context, int group) : context_(context), group_(group) {}

  /// Sets the group's answer. One that cannot be tokenised is left to info_gain.h, which reports it.
  void open(const std::vector<std::string>& ground_truth);

  /// Call it when the member's current turn is about to get its first token: scores the answer after the previous turn,
  /// or after the prompt, unless that has been done. REQUIRES: `members` holds it and those it branched from.
  void ask(Member& member, std::span<const std::unique_ptr<Member>> members);

  /// Stops scoring because the members' prompts differ; write() then writes nothing.
  void give_up();

  void on_score(const ScoredAnswer& scored, std::span<const std::unique_ptr<Member>> members);

  /// Whether a requested score is still missing.
  bool waits() const { return !pending_.empty(); }
  /// Cancels the pending requests.
  void abandon();

  /// Writes the information gains of the group's trees, whose turns are numbered as `turns`; nothing if a number is
  /// missing.
  void write(Group& group, std::vector<std::vector<std::optional<double>>> turns) const;

 private:
  /// A turn that a member sampled; -1: the prompt.
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
