#include "carnot/core/branch/branch.h"

#include <algorithm>
#include <cmath>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

class Independent final : public BranchPolicy {
 public:
  std::string name() const override { return "independent"; }
  int initial(int budget) const override { return budget; }
  bool branch_here(const BranchContext&) const override { return false; }
  bool ever_branches() const override { return false; }
};

double over_log_vocabulary(double sum, int vocabulary) {
  CARNOT_CHECK_GT(vocabulary, 1);
  return sum / std::log(static_cast<double>(vocabulary));
}

}  // namespace

std::unique_ptr<BranchPolicy> independent() { return std::make_unique<Independent>(); }

double turn_entropy(std::span<const double> token_entropies, int tokens, int vocabulary) {
  double sum = 0;
  for (double h : token_entropies.first(std::min(token_entropies.size(), static_cast<std::size_t>(tokens)))) sum += h;
  return over_log_vocabulary(sum, vocabulary);
}

double turn_entropy_of_candidates(std::span<const std::vector<double>> candidate_log_probs, int tokens,
                                  int vocabulary) {
  double sum = 0;
  const std::size_t count = std::min(candidate_log_probs.size(), static_cast<std::size_t>(tokens));
  for (const auto& candidates : candidate_log_probs.first(count))
    for (double log_prob : candidates) sum -= std::exp(log_prob) * log_prob;
  return over_log_vocabulary(sum, vocabulary);
}

}  // namespace carnot
