// credit/measured_advantage.h -- advantages that continuations have measured: Column::AdvantageOracle.
#pragma once

#include "carnot/core/credit/rule.h"

namespace carnot {

/// Adds the column to every sampled token. A token without a value gets nothing: its trajectory was not chosen, or
/// its continuations were lost to the infrastructure.
CreditRule measured_advantage();

}  // namespace carnot
