#include "carnot/core/credit/chain_record.h"

namespace carnot {

std::vector<RuleRecord> record_credit(std::span<const CreditRule> chain, std::span<const Trajectory> trajectories) {
  std::vector<RuleRecord> records;
  CreditTable table = fresh_credit(trajectories);
  for (const CreditRule& rule : chain) {
    RuleReadings readings(trajectories);
    if (rule.read) rule.read(trajectories, table, readings);
    rule.apply(trajectories, table);
    records.push_back({.rule = rule.name, .kind = rule.kind, .readings = readings.all(), .after = table});
  }
  return records;
}

}  // namespace carnot
