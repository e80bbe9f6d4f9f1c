// env/webshop/factory.h -- WebShop's tasks: a shop from files, splits, and the prompts of RAGEN or of verl-agent.
#pragma once

#include <memory>

#include "carnot/env/environment.h"

namespace carnot {

std::unique_ptr<EnvironmentFactory> make_webshop();

}  // namespace carnot
