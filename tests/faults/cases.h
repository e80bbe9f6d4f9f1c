// faults/cases.h -- which cases of a test run: a seeded sample, or all of them, minus those that an earlier attempt
// passed.
//
//   CARNOT_FAULT_CASES=N|all   cases of each test; 3 by default
//   CARNOT_FAULT_SEED=S        of the sample; 0 by default
//   CARNOT_FAULT_DONE=FILE     has a line for each case that passed; those are not run again
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace carnot::testing {

struct Case {
  std::string name{};             ///< says what happens, and identifies the case in its test
  std::function<void()> check{};  ///< fails by gtest's means
};

/// Runs the chosen cases of the current test.
void run_cases(const std::vector<Case>& cases);

}  // namespace carnot::testing
