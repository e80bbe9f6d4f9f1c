// studies/credit_agreement.h -- how well a method's credit agrees with measured advantages.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "carnot/core/base/statistics.h"
#include "carnot/studies/oracle_values.h"

namespace carnot {

/// Credit and advantage of the same turns, thoughts or actions.
struct ComparedCredit {
  std::vector<double> credit{};
  std::vector<double> advantage{};
  std::vector<double> error{};  ///< standard errors of the advantages
  std::vector<int> task{};      ///< pairs of one task are not independent

  void add(double of_method, double measured, double standard_error, int of_task) {
    credit.push_back(of_method);
    advantage.push_back(measured);
    error.push_back(standard_error);
    task.push_back(of_task);
  }
};

struct CreditAgreement {
  std::int64_t pairs = 0;
  std::optional<double> pearson{};
  std::optional<Interval> interval{};  ///< 95 %, of Pearson: percentiles over bootstrapped tasks
  std::optional<double> corrected{};   ///< Pearson as it would be without noise of the advantages (disattenuated())
  std::optional<double> spearman{};
  std::int64_t clear = 0;  ///< pairs whose advantage is more than two standard errors from 0
  std::int64_t right = 0;  ///< of those, where the credit has the same sign
};

CreditAgreement agreement_of(const ComparedCredit& pairs, const Reliability& reliability, std::uint64_t seed);

}  // namespace carnot
