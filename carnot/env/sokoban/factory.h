// env/sokoban/factory.h -- Sokoban's tasks in RAGEN's conversation.
#pragma once

#include <memory>

#include "carnot/env/environment.h"

namespace carnot {

std::unique_ptr<EnvironmentFactory> make_sokoban();

}  // namespace carnot
