// studies/aem_theorem.cpp -- AEM's theorem 3.2.2 on random policies, arXiv:2605.00425
#include <array>
#include <cmath>

#include "carnot/studies/correlation.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/estimate.h"
#include "carnot/studies/response_simplex.h"
#include "carnot/studies/sparse_decision.h"

namespace carnot {
namespace {

constexpr std::array<const char*, 3> kForms = {"one response", "expected policy gradient", "with entropy bonus and KL"};

double largest_error(const std::vector<double>& theorem, const std::vector<double>& measured) {
  double largest = 0;
  for (std::size_t i = 0; i < theorem.size(); ++i)
    largest = std::max(largest, std::abs(measured[i] - theorem[i]) / std::max(1.0, std::abs(theorem[i])));
  return largest;
}

class AemTheorem final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    visit.field("policies", policies_, "random policies for each form", at_least(1));
    visit.field("responses", responses_, "of each policy", between(2, 64));
    visit.field("spread", spread_, "standard deviation of the logits", at_least(0));
    visit.field("seed", seed_, "of the policies", at_least(0));
  }

  Result<AnalysisReport> run(const AnalysisInput&) override {
    AnalysisReport report;
    Table table{.name = "drift", .columns = {"form", "theorem", "measured"}};
    RandomStream random(derive_seed(static_cast<std::uint64_t>(seed_), "aem-theorem"));
    std::array<std::vector<double>, kForms.size()> theorem, measured;
    for (int i = 0; i < policies_; ++i)
      for (std::size_t form = 0; form < kForms.size(); ++form) {
        const std::vector<double> logits = normals(random);
        const SimplexObjective objective = objective_of(form, logits, random);
        theorem[form].push_back(entropy_drift(logits, objective));
        measured[form].push_back(measured_entropy_drift(logits, objective));
      }
    for (std::size_t form = 0; form < kForms.size(); ++form) {
      const std::string name = kForms[form];
      for (int i = 0; i < policies_; ++i) table.add(name, theorem[form][i], measured[form][i]);
      report.find(name + ": equal signs", "theorem 3.2.2",
                  share_text(equal_signs(theorem[form], measured[form]), policies_));
      report.find(name + ": largest error", "0", number_text(largest_error(theorem[form], measured[form])));
    }
    report.tables = {std::move(table)};
    report.figures = {{.title = "Rate of change of the entropy",
                       .caption = "A point per random policy; the theorem says that they lie on the diagonal.",
                       .table = "drift",
                       .draw = Draw::Points,
                       .x = "theorem",
                       .y = {"measured"},
                       .series = {"form"}}};
    report.notes = {
        "Measured: gradient by differences, natural gradient by solving with the Fisher matrix, entropy by "
        "differences along it. Errors are relative where the rate is above 1."};
    return report;
  }

 private:
  std::vector<double> normals(RandomStream& random) const {
    std::vector<double> values;
    for (int a = 0; a < responses_; ++a) values.push_back(spread_ * random.normal());
    return values;
  }

  /// 0: one response with a random advantage; 1: every response, by its probability; 2: the same with bonus and KL.
  SimplexObjective objective_of(std::size_t form, const std::vector<double>& logits, RandomStream& random) const {
    SimplexObjective objective{.weights = std::vector<double>(logits.size(), 0.0)};
    if (form == 0) {
      objective.weights[random.below(logits.size())] = random.normal();
      return objective;
    }
    objective.weights = softmax(logits);
    for (double& weight : objective.weights) weight *= random.normal();
    if (form == 1) return objective;
    objective.bonus = random.uniform();
    objective.kl = random.uniform();
    objective.reference = normals(random);
    return objective;
  }

  int policies_ = 500;
  int responses_ = 8;
  double spread_ = 1;
  std::int64_t seed_ = 0;
};

}  // namespace

std::unique_ptr<Analysis> aem_theorem() { return std::make_unique<AemTheorem>(); }

}  // namespace carnot
