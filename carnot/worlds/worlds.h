// worlds/worlds.h -- the table of Carnot's own environments.
#pragma once

#include "carnot/core/env/environment.h"

namespace carnot {

/// Makes them the environments that recipes name. Adding one: a folder, its rooms in worlds/CMakeLists.txt, and a line
/// each in entries.h and worlds.cpp.
void offer_worlds();

}  // namespace carnot
