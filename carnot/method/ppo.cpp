// method/ppo.cpp -- Proximal Policy Optimization with a critic, arXiv:1707.06347
#include "carnot/credit/bilevel_gae.h"
#include "carnot/credit/gae.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Paper, "gamma and lambda 1, advantages whitened, clip 0.2, token mean, dual clip 3"},
};

struct AdvantageQuirks {
  bool through_observations = false;
  bool turns_end_at_rewards = false;

  void fields(FieldVisitor& visit) {
    visit.field("through_observations", through_observations,
                "older code: the recursion runs through observations too (not bilevel)");
    visit.field("turns_end_at_rewards", turns_end_at_rewards,
                "bilevel: a turn ends where a token's reward is not 0, instead of where it was sampled");
  }
};

class Ppo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets);
    gae_.fields(visit);
    visit.field("bilevel", bilevel_,
                "estimate between turns first, then inside each (RAGEN); use with reward.per_turn");
    visit.field("turn_gamma", turn_gamma_, "discount per turn of the bilevel form", between(0, 1));
    reward_section(visit, reward_);
    section(visit, "compat", quirks_, "single quirks of published code");
  }

  UnreadKeys unread_keys() const override {
    UnreadKeys unread;
    unread.add(gae_.unread_keys());
    if (!bilevel_) unread.add({"turn_gamma", "compat.turns_end_at_rewards"}, "bilevel is false");
    if (bilevel_) unread.add({"compat.through_observations"}, "bilevel estimates inside turns");
    unread.add(reward_.unread_keys(RewardsRead::Tokens), "reward");
    return unread;
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.credit.push_back(bilevel_ ? between_and_inside_turns() : between_tokens());
    method.objective.value_coefficient = 1;
  }

 private:
  CreditRule between_tokens() const {
    GaeOptions options = gae_;
    options.skip_unsampled = !quirks_.through_observations;
    return gae(options);
  }

  CreditRule between_and_inside_turns() const {
    return bilevel_gae({.gamma = gae_.gamma,
                        .lambda = gae_.lambda,
                        .turn_gamma = turn_gamma_,
                        .whiten = gae_.whiten,
                        .whitening = gae_.whitening,
                        .turns_end_at_rewards = quirks_.turns_end_at_rewards});
  }

  GaeOptions gae_{};
  bool bilevel_ = false;
  double turn_gamma_ = 0.95;
  AdvantageQuirks quirks_{};
  RewardOptions reward_{};
};

}  // namespace

MethodEntry ppo_entry() {
  return {.name = "ppo",
          .paper = "1707.06347",
          .summary = "token advantages from a critic (GAE)",
          .is_base = true,
          .is_add_on = false,
          .presets = kPresets,
          .make = make_method<Ppo>};
}

}  // namespace carnot
