// tools/tools.h -- the table of Carnot's own kinds of tools.
#pragma once

namespace carnot {

/// Makes them the kinds that recipes list. Adding one: a folder, its room in tools/CMakeLists.txt, and a line each in
/// entries.h and tools.cpp.
void offer_tools();

}  // namespace carnot
