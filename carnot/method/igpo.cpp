// method/igpo.cpp -- Information Gain-based Policy Optimization, arXiv:2510.14967
#include "carnot/credit/token_gain.h"
#include "carnot/credit/turn_gain.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Paper, "gains and outcomes of a group normalised together and summed turn by turn"},
    {Preset::Code,
     "November 2025: gains as token rewards against the group's mean at each token index; entropy bonus 0.001"},
};

struct GainQuirks {
  bool token_rewards = false;
  TokenBaseline token_baseline = TokenBaseline::Column;
  bool restart_at_observations = false;
  bool forget_zero_gains = false;

  void fields(FieldVisitor& visit) {
    visit.field("token_rewards", token_rewards,
                "November 2025: gains are token rewards, against the group's mean at the same token index");
    enum_field(visit, "token_baseline", token_baseline, {"column", "first_token"},
               "what token rewards are taken against: the mean at the same index, or the group's first tokens");
    visit.field("restart_at_observations", restart_at_observations,
                "sums of token rewards start anew behind observations");
    visit.field("forget_zero_gains", forget_zero_gains, "a gain of exactly 0 is lost and its turn joins the next");
  }
};

class Igpo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets, preset_, [&] { quirks_.token_rewards = preset_ == Preset::Code; });
    gain_.fields(visit);
    section(visit, "info_gain", info_gain_, "how gains are measured");
    reward_section(visit, reward_);
    section(visit, "compat", quirks_, "single quirks of published code");
  }

  UnreadKeys unread_keys() const override {
    UnreadKeys unread;
    unread.add(gain_.normalisation.unread_keys());
    if (!quirks_.token_rewards)
      unread.add({"compat.token_baseline", "compat.restart_at_observations"}, "compat.token_rewards is false");
    if (quirks_.token_rewards)
      unread.add({"pool", "compat.forget_zero_gains"}, "compat.token_rewards has a form of its own");
    if (quirks_.token_rewards && quirks_.token_baseline == TokenBaseline::Column)
      unread.add_all(gain_.normalisation, "", "compat.token_baseline column takes the mean alone");
    unread.add(reward_.unread_keys(RewardsRead::Totals), "reward");
    return unread;
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.signals.insert(Signal::InfoGain);
    method.info_gain = info_gain_;
    method.credit.push_back(quirks_.token_rewards ? on_tokens() : on_turns());
    method.objective.kl_coefficient = 0.001;
    if (preset_ == Preset::Code) method.objective.entropy_coefficient = 0.001;
  }

 private:
  CreditRule on_turns() const {
    TurnGainOptions gain = gain_;
    if (quirks_.forget_zero_gains) gain.steps = GainSteps::NonzeroGains;
    return turn_gain(gain);
  }

  CreditRule on_tokens() const {
    return token_gain({.discount = gain_.discount,
                       .baseline = quirks_.token_baseline,
                       .normalisation = gain_.normalisation,
                       .restart_at_observations = quirks_.restart_at_observations});
  }

  Preset preset_ = Preset::Paper;
  TurnGainOptions gain_{};
  InfoGainOptions info_gain_{};
  GainQuirks quirks_{};
  RewardOptions reward_{};
};

}  // namespace

MethodEntry igpo_entry() {
  return {.name = "igpo",
          .paper = "2510.14967",
          .summary = "information gains and outcome as turn rewards",
          .is_base = true,
          .is_add_on = false,
          .presets = kPresets,
          .make = make_method<Igpo>};
}

}  // namespace carnot
