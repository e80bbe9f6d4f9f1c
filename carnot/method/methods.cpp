#include "carnot/method/entries.h"

namespace carnot {

const std::vector<MethodEntry>& methods() {
  static const std::vector<MethodEntry> all = {
      ppo_entry(),
      grpo_entry(),
  };
  return all;
}

}  // namespace carnot
