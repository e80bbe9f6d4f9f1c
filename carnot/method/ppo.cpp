// method/ppo.cpp -- Proximal Policy Optimization with a critic, arXiv:1707.06347
#include "carnot/credit/bilevel_gae.h"
#include "carnot/credit/gae.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

class Ppo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    only_paper_preset(visit);
    gae_.fields(visit);
    visit.field("bilevel", bilevel_, "estimate between turns first, then inside each (RAGEN); use with reward.per_turn");
    visit.field("turn_gamma", turn_gamma_, "discount per turn of the bilevel form", between(0, 1));
    reward_section(visit, reward_);
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.signals.insert(Signal::Value);
    if (bilevel_)
      method.credit.push_back(bilevel_gae(
          {.gamma = gae_.gamma, .lambda = gae_.lambda, .turn_gamma = turn_gamma_, .whiten = gae_.whiten}));
    else
      method.credit.push_back(gae(gae_));
    method.objective.value_coefficient = 1;
  }

 private:
  GaeOptions gae_{};
  bool bilevel_ = false;
  double turn_gamma_ = 0.95;
  RewardOptions reward_{};
};

}  // namespace

MethodEntry ppo_entry() {
  return {.name = "ppo",
          .paper = "1707.06347",
          .summary = "token advantages from a critic (GAE)",
          .is_base = true,
          .is_add_on = false,
          .make = make_method<Ppo>};
}

}  // namespace carnot
