// method/a2tgpo.cpp -- Agentic Turn-Group Policy Optimization with adaptive turn-level clipping, arXiv:2605.06200
#include "carnot/credit/turn_group_gain.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Paper, "gains of probabilities against the prompt alone, weight 1"},
    {Preset::Code, "gains of log-probabilities from the second turn on, weight 0.3; gains of 0 are lost"},
};

struct TurnGroupQuirks {
  bool forget_zero_gains = false;

  void fields(FieldVisitor& visit) {
    visit.field("forget_zero_gains", forget_zero_gains,
                "a gain of exactly 0 is lost: its turn joins the next, and later turns move up in their groups");
  }
};

class A2tgpo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets, preset_, [&] { apply_preset(); });
    gain_.fields(visit);
    section(visit, "info_gain", info_gain_, "how gains are measured");
    section(visit, "compat", quirks_, "single quirks of published code");
  }

  void base_fields(FieldVisitor& visit) override { reward_section(visit, reward_); }

  UnreadKeys unread_keys() const override {
    UnreadKeys unread;
    unread.add(reward_.unread_keys(RewardsRead::Totals), "reward");
    return unread;
  }

  void compose(Method& method) const override {
    if (!has_base(method)) {
      start_group_base(method, reward_, {.normalisation = population_normalisation()});
      method.objective.ratio = RatioLevel::Turn;
      method.objective.clip_low = 3e-3;
      method.objective.clip_high = 4e-3;
      method.objective.dual_clip = 0;
      method.objective.reduction = Reduction::SequenceMeanTokenMean;
    }
    method.signals.insert(Signal::InfoGain);
    method.info_gain = info_gain_;
    TurnGroupGainOptions gain = gain_;
    if (quirks_.forget_zero_gains) gain.steps = GainSteps::NonzeroGains;
    method.credit.push_back(turn_group_gain(gain));
  }

 private:
  void apply_preset() {
    const bool code = preset_ == Preset::Code;
    gain_.weight = code ? 0.3 : 1;
    info_gain_ = {.measure = code ? GainMeasure::LogProbability : GainMeasure::Probability, .query_baseline = !code};
    quirks_.forget_zero_gains = code;
  }

  Preset preset_ = Preset::Paper;
  TurnGroupGainOptions gain_{};
  InfoGainOptions info_gain_{};
  TurnGroupQuirks quirks_{};
  RewardOptions reward_{};
};

}  // namespace

MethodEntry a2tgpo_entry() {
  return {.name = "a2tgpo",
          .paper = "2605.06200",
          .summary = "information gains against peers of the same turn; turn ratios with adaptive clip",
          .is_base = true,
          .is_add_on = true,
          .presets = kPresets,
          .make = make_method<A2tgpo>};
}

}  // namespace carnot
