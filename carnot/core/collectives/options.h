// collectives/options.h -- how long the ranks of a group wait for each other.
#pragma once

#include "carnot/core/base/fields.h"

namespace carnot {

/// `distributed.*`: none of them changes a result.
struct ProcessGroupOptions {
  double join_seconds = 600;         ///< until all ranks are there: machines do not start together
  double lost_after_seconds = 10;    ///< a rank that shows no sign of life for so long is lost
  double beat_seconds = 0.5;         ///< between signs of life
  double hung_after_seconds = 1800;  ///< a rank that lives and lets the others wait for so long is lost; 0: never

  void fields(FieldVisitor& visit);
};

}  // namespace carnot
