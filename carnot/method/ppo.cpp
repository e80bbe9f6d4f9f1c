// method/ppo.cpp -- Proximal Policy Optimization with a critic, arXiv:1707.06347
#include "carnot/credit/gae.h"
#include "carnot/credit/reward.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

class Ppo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    only_paper_preset(visit);
    gae_.fields(visit);
    visit.field("turn_rewards", turn_rewards_, "place each turn's reward on that turn instead of the total at the end");
  }

  void compose(Method& method) const override {
    method.branch = independent();
    method.signals.insert({Signal::LogProbOld, Signal::Value});
    if (turn_rewards_) method.credit.push_back(turn_rewards());
    method.credit.push_back(gae(gae_));
    method.objective.value_coefficient = 1;
  }

 private:
  GaeOptions gae_{};
  bool turn_rewards_ = false;
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
