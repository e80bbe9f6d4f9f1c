// run/budget_table.h -- what a run will take of something, part by part, as `--dry-run` prints it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace carnot {

struct BudgetPart {
  std::string name{};
  std::int64_t bytes = 0;
  std::string explanation{};  ///< the numbers it comes from
};

/// Of all parts; stops at the largest 64-bit number.
std::int64_t total_bytes(const std::vector<BudgetPart>& parts);

/// One line per part and the sum, for a terminal.
std::string budget_table(const std::vector<BudgetPart>& parts);

}  // namespace carnot
