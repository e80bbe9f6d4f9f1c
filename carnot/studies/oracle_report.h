// studies/oracle_report.h -- what an oracle found, as tables, figures and findings.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "carnot/core/data/trajectory.h"
#include "carnot/studies/analysis.h"
#include "carnot/studies/method_credit.h"
#include "carnot/studies/oracle_plan.h"
#include "carnot/studies/oracle_values.h"

namespace carnot {

/// An oracle's measurements. Views of what its caller holds.
struct OracleFindings {
  std::span<const Trajectory> all;
  const OraclePlan& plan;
  std::span<const StateValue> values;  ///< by state
  const MethodCredits& credits;
  std::uint64_t seed = 0;  ///< of the bootstrap
};

/// Tables: methods, by turn, by span, signal, turns, states. A turn with a state that has no value is left out.
AnalysisReport oracle_report(const OracleFindings& found);

}  // namespace carnot
