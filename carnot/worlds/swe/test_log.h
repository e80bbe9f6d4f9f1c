// worlds/swe/test_log.h -- what pytest printed: which tests passed, and whether they are the expected ones.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace carnot {

enum class TestStatus { Passed, Failed, Error, ExpectedFailure };

/// By pytest's name, "tests/test_a.py::TestB::test_c[1]", without the reason behind " - ".
using TestStatuses = std::map<std::string, TestStatus>;

/// The lines of the last "short test summary info" that say PASSED, FAILED, ERROR or XFAIL; colours are ignored. A test
/// that is listed twice has the worse status. Empty if there is no summary. pytest lists tests that passed under
/// -rA.
TestStatuses parse_pytest_log(std::string_view log);

/// Whether every test of `passing` passed. `no_others`: and the log lists no other test (R2E compares whole maps).
/// Otherwise names are compared up to their first blank, as SWE-bench's lists have them, and an expected failure counts
/// as passed.
bool all_passed(const TestStatuses& statuses, const std::vector<std::string>& passing, bool no_others);

/// The share of `passing` that passed, by the same comparison.
double share_passed(const TestStatuses& statuses, const std::vector<std::string>& passing, bool no_others);

}  // namespace carnot
