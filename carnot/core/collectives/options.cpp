#include "carnot/core/collectives/options.h"

namespace carnot {

void ProcessGroupOptions::fields(FieldVisitor& visit) {
  constexpr double kLongest = 1e7;
  visit.field("join_seconds", join_seconds, "time in which all ranks have to come together", between(1, kLongest));
  visit.field("lost_after_seconds", lost_after_seconds,
              "a rank that has shown no sign of life for so long is lost, and the group ends", between(2, kLongest));
  visit.field("hung_after_seconds", hung_after_seconds,
              "a rank that lives, but lets the others wait for so long, is lost as well; 0: never",
              between(0, kLongest));
}

}  // namespace carnot
