#include "cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>
#include <random>
#include <set>

namespace carnot::testing {
namespace {

std::string setting(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

std::string test_name() {
  const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
  return std::string(test.test_suite_name()) + "." + test.name();
}

/// In the order of the cases, so that what happens early in a run is tried first.
std::vector<std::size_t> chosen(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  const std::string wanted = setting("CARNOT_FAULT_CASES", "3");
  if (wanted == "all") return order;
  std::mt19937_64 draw(std::stoull(setting("CARNOT_FAULT_SEED", "0")) + std::hash<std::string>()(test_name()));
  std::shuffle(order.begin(), order.end(), draw);
  order.resize(std::min<std::size_t>(count, std::stoull(wanted)));
  std::sort(order.begin(), order.end());
  return order;
}

std::set<std::string> lines_of(const std::string& path) {
  std::set<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

}  // namespace

void run_cases(const std::vector<Case>& cases) {
  ASSERT_FALSE(cases.empty());
  const std::string done_path = setting("CARNOT_FAULT_DONE", "");
  const std::set<std::string> done = lines_of(done_path);
  const std::vector<std::size_t> picked = chosen(cases.size());
  std::size_t ran = 0;
  for (const std::size_t i : picked) {
    const std::string name = test_name() + "\t" + cases[i].name;
    if (done.contains(name)) continue;
    ++ran;
    {
      SCOPED_TRACE(cases[i].name);
      const int failures = ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
      cases[i].check();
      if (::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count() > failures) continue;
    }
    if (!done_path.empty()) std::ofstream(done_path, std::ios::app) << name << std::endl;
  }
  std::cout << test_name() << ": " << cases.size() << " cases, " << ran << " run, " << picked.size() - ran
            << " passed earlier" << std::endl;
}

}  // namespace carnot::testing
