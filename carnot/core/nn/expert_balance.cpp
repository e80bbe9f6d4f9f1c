#include "carnot/core/nn/expert_balance.h"

#include <string>

#include "carnot/core/base/check.h"

namespace carnot {

void ExpertBalance::count(int layer, std::int64_t rows, std::span<const std::int64_t> chosen,
                          std::span<const double> probability) {
  CARNOT_CHECK(awaits(layer), "layer " + std::to_string(layer) + " is counted twice");
  layers_.insert(layer);
  CARNOT_CHECK_EQ(chosen.size(), probability.size());
  chosen_.resize(chosen.size());
  probability_.resize(chosen.size());
  rows_ += static_cast<double>(rows);
  for (std::size_t e = 0; e < chosen.size(); ++e) {
    chosen_[e] += static_cast<double>(chosen[e]);
    probability_[e] += probability[e];
  }
}

double ExpertBalance::loss() const {
  double sum = 0;
  for (std::size_t e = 0; e < chosen_.size(); ++e) sum += chosen_[e] * probability_[e];
  return rows_ > 0 ? static_cast<double>(chosen_.size()) * sum / (rows_ * rows_) : 0;
}

std::vector<double> ExpertBalance::gradient() const {
  std::vector<double> gradient;
  for (const double chosen : chosen_)
    gradient.push_back(weight_ * static_cast<double>(chosen_.size()) * chosen / (rows_ * rows_));
  return gradient;
}

}  // namespace carnot
