// method/igpo.cpp -- Information Gain-based Policy Optimization, arXiv:2510.14967
#include "carnot/credit/token_gain.h"
#include "carnot/credit/turn_gain.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

struct GainQuirks {
  bool token_rewards = false;
  bool forget_zero_gains = false;

  void fields(FieldVisitor& visit) {
    visit.field("token_rewards", token_rewards,
                "November 2025: gains are token rewards, against the group's mean at the same token index");
    visit.field("forget_zero_gains", forget_zero_gains, "a gain of exactly 0 is lost and its turn joins the next");
  }
};

class Igpo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, preset_, [&] { quirks_.token_rewards = preset_ == Preset::Code; });
    gain_.fields(visit);
    section(visit, "info_gain", info_gain_, "how gains are measured");
    reward_section(visit, reward_);
    section(visit, "compat", quirks_, "single quirks of published code");
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.signals.insert(Signal::InfoGain);
    method.info_gain = info_gain_;
    TurnGainOptions gain = gain_;
    if (quirks_.forget_zero_gains) gain.steps = GainSteps::NonzeroGains;
    method.credit.push_back(quirks_.token_rewards ? token_gain({.discount = gain_.discount}) : turn_gain(gain));
    method.objective.kl_coefficient = 0.001;
    if (preset_ == Preset::Code) method.objective.entropy_coefficient = 0.001;
  }

 private:
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
          .make = make_method<Igpo>};
}

}  // namespace carnot
