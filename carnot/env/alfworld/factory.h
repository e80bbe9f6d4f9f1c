// env/alfworld/factory.h -- ALFWorld's tasks in verl-agent's conversation or in RAGEN's.
//
// Training goes through all games of a split, each epoch in an order of its own; validation task i is game i of the
// other split, sorted by name and counted around its end.
#pragma once

#include <memory>

#include "carnot/env/environment.h"

namespace carnot {

std::unique_ptr<EnvironmentFactory> make_alfworld();

}  // namespace carnot
