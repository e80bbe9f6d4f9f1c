// credit/chain_record.h -- a chain of credit rules, rule by rule: what each one looked at, and the credit behind it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "carnot/core/credit/readings.h"
#include "carnot/core/credit/rule.h"

namespace carnot {

struct RuleRecord {
  std::string rule{};
  RuleKind kind = RuleKind::Base;
  std::vector<RuleReading> readings{};
  CreditTable after{};  ///< numbered as the trajectories, as are the readings
};

/// Runs the chain on fresh credit. The last record's table is run_credit(chain, trajectories).
std::vector<RuleRecord> record_credit(std::span<const CreditRule> chain, std::span<const Trajectory> trajectories);

}  // namespace carnot
