#include "carnot/core/data/columns.h"

#include <limits>

#include "carnot/core/base/check.h"

namespace carnot {

const std::vector<double>& Columns::turn(Column column, int turn) const {
  CARNOT_CHECK(has(column), "no column " + std::string(name_of(column)));
  CARNOT_CHECK_LT(static_cast<std::size_t>(turn), at(column).size());
  return at(column)[turn];
}

std::vector<double>& Columns::edit(Column column, int turn, int size) {
  auto& turns = values_[static_cast<std::size_t>(column)];
  const auto index = static_cast<std::size_t>(turn);
  if (turns.size() <= index) turns.resize(index + 1);
  turns[index].resize(size, std::numeric_limits<double>::quiet_NaN());
  return turns[index];
}

}  // namespace carnot
