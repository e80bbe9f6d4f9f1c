#include "carnot/method/entries.h"

namespace carnot {

const std::vector<MethodEntry>& methods() {
  static const std::vector<MethodEntry> all = {
      ppo_entry(),
      grpo_entry(),
      dr_grpo_entry(),
      dapo_entry(),
      gspo_entry(),
      rloo_entry(),
      reinforce_plus_plus_entry(),
      starpo_s_entry(),
      gigpo_entry(),
      igpo_entry(),
      arpo_entry(),
      tree_grpo_entry(),
      aepo_entry(),
      aem_entry(),
      a2tgpo_entry(),
      aent_entry(),
      actfocus_entry(),
  };
  return all;
}

}  // namespace carnot
