// env/frozen_lake/factory.h -- FrozenLake's tasks in RAGEN's conversation.
#pragma once

#include <memory>

#include "carnot/env/environment.h"

namespace carnot {

std::unique_ptr<EnvironmentFactory> make_frozen_lake();

}  // namespace carnot
