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

}  // namespace carnot
