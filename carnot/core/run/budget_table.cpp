#include "carnot/core/run/budget_table.h"

#include <cstdio>

#include "carnot/core/base/saturating.h"

namespace carnot {

std::int64_t total_bytes(const std::vector<BudgetPart>& parts) {
  Saturating sum = 0;
  for (const BudgetPart& part : parts) sum += part.bytes;
  return sum.value();
}

std::string budget_table(const std::vector<BudgetPart>& parts) {
  constexpr double kMegabyte = 1 << 20;
  std::string text;
  const auto line = [&](std::int64_t bytes, const std::string& what) {
    char number[32];
    std::snprintf(number, sizeof number, "  %10.1f MiB  ", static_cast<double>(bytes) / kMegabyte);
    text += number + what + "\n";
  };
  for (const BudgetPart& part : parts) line(part.bytes, part.name + " (" + part.explanation + ")");
  line(total_bytes(parts), "in all");
  return text;
}

}  // namespace carnot
