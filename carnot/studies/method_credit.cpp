#include "carnot/studies/method_credit.h"

#include <optional>

#include "carnot/core/credit/rule.h"
#include "carnot/core/method/contestants.h"
#include "carnot/core/rollout/info_gain.h"
#include "carnot/core/rollout/measure.h"
#include "carnot/core/run/checkpoint.h"
#include "carnot/core/run/find_run.h"

namespace carnot {
namespace {

/// Measures what methods need on the same groups, nothing twice.
class SharedMeasurements {
 public:
  SharedMeasurements(OpenedPolicy& policy, std::vector<Group>& groups)
      : policy_(policy),
        groups_(groups),
        options_{.max_tokens = policy.recipe.rollout.log_prob_tokens,
                 .temperature = policy.recipe.rollout.options.sampling.temperature} {}

  Status measure(const Method& method) {
    const auto needed = measurements(method);
    if (needed.contains(Measurement::Reference)) CARNOT_RETURN_IF_ERROR(reference());
    if (needed.contains(Measurement::Values)) CARNOT_RETURN_IF_ERROR(values());
    if (needed.contains(Measurement::Oracle)) return Error{"is what continuations measure here; leave it out"};
    return needed.contains(Measurement::InfoGain) ? gains(method.info_gain) : Status(Done{});
  }

 private:
  Status reference() {
    if (!policy_.bundle.reference)
      return Error{"needs a reference, which the checkpoint does not have; name one with reference=CHECKPOINT"};
    if (!has_reference_) measure_reference(*policy_.bundle.reference, groups_, options_);
    has_reference_ = true;
    return Done{};
  }

  Status values() {
    if (!policy_.bundle.critic) return Error{"needs a critic, which the checkpoint does not have"};
    if (!has_values_) measure_values(*policy_.bundle.critic, groups_, options_);
    has_values_ = true;
    return Done{};
  }

  Status gains(const InfoGainOptions& gain) {
    const std::string lead = policy_.recipe.answer_lead();
    if (lead.empty()) return Error{"needs information gains, and the environment has no final answers"};
    if (gains_ && gains_->measure == gain.measure && gains_->query_baseline == gain.query_baseline) return Done{};
    clear_info_gain(groups_);
    measure_info_gain(*policy_.bundle.policy, *policy_.bundle.tokenizer, groups_, {.text = lead}, gain, options_);
    gains_ = gain;
    return Done{};
  }

  OpenedPolicy& policy_;
  std::vector<Group>& groups_;
  LogProbPassOptions options_;
  bool has_reference_ = false, has_values_ = false;
  std::optional<InfoGainOptions> gains_{};
};

Result<CreditTable> credit_of(const Contestant& contestant, const OpenedPolicy& policy, std::span<const Group> groups,
                              SharedMeasurements& shared, std::vector<std::string> overrides) {
  overrides.insert(overrides.end(), contestant.settings.begin(), contestant.settings.end());
  overrides.push_back("method=" + contestant.method);
  CARNOT_ASSIGN_OR_RETURN(const auto config, find_config(policy.checkpoint));
  CARNOT_ASSIGN_OR_RETURN(const auto recipe, Recipe::load_recorded(config, overrides));
  CARNOT_RETURN_IF_ERROR(shared.measure(recipe.method));
  return run_credit(credit_chain(recipe.method, 0), trajectories(groups));
}

}  // namespace

Status load_companions(OpenedPolicy& policy, const std::filesystem::path& reference) {
  ModelBundle& bundle = policy.bundle;
  const bool has_critic = std::filesystem::exists(policy.checkpoint / "critic.safetensors");
  const bool has_reference = std::filesystem::exists(policy.checkpoint / "reference.safetensors");
  if (has_critic) bundle.critic = std::make_unique<ValueModel>(*bundle.policy);
  if (has_reference) bundle.reference = std::make_unique<Model>(bundle.policy->frozen());
  if (has_critic || has_reference) {
    const auto loaded = load_checkpoint(policy.checkpoint, {.bundle = &bundle}, policy.recipe.run);
    if (!loaded) return loaded.error();
  }
  if (reference.empty()) return Done{};
  CARNOT_ASSIGN_OR_RETURN(auto other, open_policy(reference, {}));
  if (other.bundle.tokenizer->vocab_size() != bundle.tokenizer->vocab_size())
    return Error{reference.string() + ": has another tokenizer than " + policy.checkpoint.string()};
  bundle.reference = std::move(other.bundle.policy);
  return Done{};
}

Result<MethodCredits> method_credits(OpenedPolicy& policy, std::vector<Group>& groups, std::string_view methods,
                                     const std::vector<std::string>& overrides) {
  CARNOT_ASSIGN_OR_RETURN(const auto contestants, parse_contestants(methods));
  SharedMeasurements shared(policy, groups);
  MethodCredits out;
  for (const Contestant& contestant : contestants) {
    auto table = credit_of(contestant, policy, groups, shared, overrides);
    if (table) {
      out.methods.push_back({.name = contestant.name(), .table = std::move(table).value()});
    } else if (contestant.from_all) {
      out.left_out.push_back(contestant.name() + ": " + table.error().message);
    } else {
      return Error{contestant.name() + ": " + table.error().message};
    }
  }
  return out;
}

double mean_credit(const Credit& credit, int begin, int end) {
  double sum = 0;
  for (int t = begin; t < end; ++t) sum += credit.advantage[t] * credit.weight[t];
  return end > begin ? sum / (end - begin) : 0;
}

}  // namespace carnot
