// studies/comparison.h -- the command `carnot compare`: methods x seeds on one recipe, from one start per seed.
//
// Seeds are the outer loop, so that the finished part is always balanced between methods. A finished run is kept, a
// stopped one continues, and comparison.json, comparison.md and report.html are rewritten after every run.
#pragma once

#include "carnot/core/run/run.h"
#include "carnot/studies/comparison_plan.h"

namespace carnot {

/// Makes the runs that are missing; what each has to say goes to log.txt in its folder. A run that fails or crashes is
/// listed, and the others continue; then the result is an error that names them. A start that fails ends the
/// comparison, and another process that is writing into its folder refuses it. Uses up the plan's recipes.
Result<RunEnd> run_comparison(ComparisonPlan& plan, const RunControl& control);

}  // namespace carnot
