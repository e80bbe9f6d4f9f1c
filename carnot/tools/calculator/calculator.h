// tools/calculator/calculator.h -- the built-in tool `calculator`.
#pragma once

#include <memory>

#include "carnot/core/env/tool.h"

namespace carnot {

std::shared_ptr<Tool> make_calculator();

}  // namespace carnot
