// The table of methods.
#include "carnot/core/method/method.h"

namespace carnot {

/// A method's name, and the function of that name in the file of that name.
#define CARNOT_METHOD(name)                       \
  #name, [] {                                     \
    extern std::unique_ptr<MethodOptions> name(); \
    return name();                                \
  }

const std::vector<MethodEntry>& methods() {
  using enum MethodKind;
  static const std::vector<MethodEntry> table = {
      {CARNOT_METHOD(ppo), Base, "1707.06347", "token advantages from a critic (GAE)"},
      {CARNOT_METHOD(grpo), Base, "2402.03300", "a trajectory's reward against its group's mean and deviation"},
      {CARNOT_METHOD(dr_grpo), Base, "2503.20783", "GRPO without division by deviation or length"},
      {CARNOT_METHOD(dapo), Base, "2503.14476",
       "GRPO with a higher upper clip, dropped groups without a signal, penalty on overlong answers"},
      {CARNOT_METHOD(gspo), Base, "2507.18071", "GRPO with one probability ratio per sequence"},
      {CARNOT_METHOD(rloo), Base, "2402.14740", "a trajectory's reward against the mean of the others"},
      {CARNOT_METHOD(reinforce_plus_plus), Base, "2501.03262", "returns whitened over the step's tokens"},
      {CARNOT_METHOD(starpo_s), Base, "2504.20073", "PPO on the groups whose rewards vary most"},
      {CARNOT_METHOD(gigpo), Either, "2505.10978", "turns against other turns that began in the same state"},
      {CARNOT_METHOD(igpo), Base, "2510.14967", "information gains and outcome as turn rewards"},
      {CARNOT_METHOD(arpo), Either, "2507.19849", "rollouts branch where entropy rises after a tool's answer"},
      {CARNOT_METHOD(tree_grpo), Base, "2509.21240",
       "trees grown from random nodes; a leaf against its group and its tree"},
      {CARNOT_METHOD(oracle), Base, "2410.01679", "what each turn changed, measured by continuations; for studies",
       /*in_all=*/false},
      {CARNOT_METHOD(aepo), Either, "2510.14545", "entropy-balanced branching, clip and advantages"},
      {CARNOT_METHOD(aem), AddOn, "2605.00425", "advantages of responses scaled by how sure the policy was of them"},
      {CARNOT_METHOD(a2tgpo), Either, "2605.06200",
       "information gains against peers of the same turn; turn ratios with adaptive clip"},
      {CARNOT_METHOD(aent), AddOn, "2509.03493",
       "entropy bonus over the likely part of the vocabulary, adaptive coefficient"},
      {CARNOT_METHOD(actfocus), AddOn, "2605.14558", "think tokens weigh less, uncertain action tokens more"},
  };
  return table;
}

}  // namespace carnot
