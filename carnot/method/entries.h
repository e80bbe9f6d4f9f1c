// method/entries.h -- one line per method file; the table in methods.cpp lists them.
#pragma once

#include "carnot/method/method.h"

namespace carnot {

template <class Options>
std::unique_ptr<MethodOptions> make_method() {
  return std::make_unique<Options>();
}

MethodEntry ppo_entry();
MethodEntry grpo_entry();
MethodEntry dr_grpo_entry();
MethodEntry dapo_entry();
MethodEntry gspo_entry();
MethodEntry rloo_entry();
MethodEntry reinforce_plus_plus_entry();
MethodEntry starpo_s_entry();
MethodEntry gigpo_entry();
MethodEntry igpo_entry();
MethodEntry arpo_entry();
MethodEntry tree_grpo_entry();
MethodEntry aepo_entry();
MethodEntry aem_entry();
MethodEntry a2tgpo_entry();
MethodEntry aent_entry();
MethodEntry actfocus_entry();

}  // namespace carnot
