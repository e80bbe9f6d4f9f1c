// env/sudoku/factory.h -- Sudoku's tasks in RAGEN's conversation.
#pragma once

#include <memory>

#include "carnot/env/environment.h"

namespace carnot {

std::unique_ptr<EnvironmentFactory> make_sudoku();

}  // namespace carnot
