// Registers worlds and tools before the first test of a program.
#include "carnot/tools/tools.h"
#include "carnot/worlds/worlds.h"

namespace carnot::testing {
namespace {

[[maybe_unused]] const bool offered = [] {
  offer_tools();
  offer_worlds();
  return true;
}();

}  // namespace
}  // namespace carnot::testing
