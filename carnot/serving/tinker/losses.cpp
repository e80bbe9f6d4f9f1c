#include "carnot/serving/tinker/losses.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>

namespace carnot {
namespace {

constexpr std::size_t kMostProblems = 10;

using LossSettings = std::map<std::string, double>;

/// What a loss reads of a datum, by token.
struct Signals {
  at::Tensor advantages_T{}, sampled_T{}, weights_T{};
};

using LossFunction = at::Tensor (*)(const at::Tensor& p_T, const Signals& signals, const LossSettings& settings);

at::Tensor ratio(const at::Tensor& p_T, const Signals& signals) { return (p_T - signals.sampled_T).exp(); }

at::Tensor clipped(const at::Tensor& ratio_T, const LossSettings& settings) {
  return ratio_T.clamp(settings.at("clip_low_threshold"), settings.at("clip_high_threshold"));
}

at::Tensor cross_entropy(const at::Tensor& p_T, const Signals& signals, const LossSettings&) {
  return -signals.weights_T * p_T;
}

at::Tensor importance_sampling(const at::Tensor& p_T, const Signals& signals, const LossSettings&) {
  return -ratio(p_T, signals) * signals.advantages_T;
}

at::Tensor ppo(const at::Tensor& p_T, const Signals& signals, const LossSettings& settings) {
  const at::Tensor ratio_T = ratio(p_T, signals);
  return -at::minimum(ratio_T * signals.advantages_T, clipped(ratio_T, settings) * signals.advantages_T);
}

at::Tensor cispo(const at::Tensor& p_T, const Signals& signals, const LossSettings& settings) {
  return -clipped(ratio(p_T, signals), settings).detach() * signals.advantages_T * p_T;
}

at::Tensor dro(const at::Tensor& p_T, const Signals& signals, const LossSettings& settings) {
  const at::Tensor change_T = p_T - signals.sampled_T;
  return -(signals.advantages_T * p_T - 0.5 * settings.at("beta") * change_T * change_T);
}

struct LossEntry {
  std::string_view name;
  LossFunction function;
  std::vector<std::string_view> needs;  ///< tensors besides target_tokens
  LossSettings defaults;                ///< NaN: has to be given
};

const std::vector<LossEntry>& entries() {
  static const std::vector<LossEntry> all = [] {
    const std::vector<std::string_view> sampled = {"advantages", "logprobs"};
    const LossSettings clip = {{"clip_low_threshold", 0.8}, {"clip_high_threshold", 1.2}};
    return std::vector<LossEntry>{{"cross_entropy", cross_entropy, {}, {}},
                                  {"importance_sampling", importance_sampling, sampled, {}},
                                  {"ppo", ppo, sampled, clip},
                                  {"cispo", cispo, sampled, clip},
                                  {"dro", dro, sampled, {{"beta", std::nan("")}}}};
  }();
  return all;
}

at::Tensor column(const TinkerDatum& datum, const std::string& name) {
  const auto found = datum.inputs.find(name);
  return found == datum.inputs.end() ? at::Tensor() : at::tensor(found->second.values, at::kDouble);
}

class ListedLoss final : public TinkerLoss {
 public:
  ListedLoss(LossFunction function, LossSettings settings) : function_(function), settings_(std::move(settings)) {}

  at::Tensor of_tokens(const TinkerDatum& datum, const at::Tensor& p_T) const override {
    Signals signals{.advantages_T = column(datum, "advantages"),
                    .sampled_T = column(datum, "logprobs"),
                    .weights_T = column(datum, "weights")};
    if (!signals.weights_T.defined()) signals.weights_T = at::ones_like(p_T);
    return function_(p_T, signals, settings_);
  }

 private:
  LossFunction function_;
  LossSettings settings_;
};

LossSettings loss_settings(const LossEntry& entry, const ForwardBackwardRequest& request,
                           std::vector<std::string>& problems) {
  LossSettings settings = entry.defaults;
  for (const auto& [name, value] : request.settings) {
    const double* number = std::get_if<double>(&value);
    if (!settings.contains(name))
      problems.push_back("loss_fn_config." + name + ": " + request.loss + " has no such setting");
    else if (number == nullptr || !std::isfinite(*number) || *number < 0)
      problems.push_back("loss_fn_config." + name + ": expected a number of at least 0");
    else
      settings[name] = *number;
  }
  for (const auto& [name, value] : settings)
    if (std::isnan(value)) problems.push_back("loss_fn_config." + name + ": " + request.loss + " needs it");
  return settings;
}

void check_datum(const LossEntry& entry, const TinkerDatum& datum, const std::string& where,
                 std::vector<std::string>& problems) {
  std::vector<std::string> read = {"target_tokens"};
  read.insert(read.end(), entry.needs.begin(), entry.needs.end());
  if (datum.tokens.empty()) problems.push_back(where + ".model_input: expected at least one token");
  for (const std::string& name : read)
    if (!datum.inputs.contains(name)) problems.push_back(where + ".loss_fn_inputs: misses " + name);
  read.emplace_back("weights");
  for (const std::string& name : read) {
    const auto found = datum.inputs.find(name);
    if (found == datum.inputs.end()) continue;
    const TinkerTensor& tensor = found->second;
    if (tensor.shape.size() != 1 || tensor.values.size() != datum.tokens.size())
      problems.push_back(where + ".loss_fn_inputs." + name + ": expected a number for each of the " +
                         std::to_string(datum.tokens.size()) + " tokens");
    for (const double value : tensor.values)
      if (!std::isfinite(value)) {
        problems.push_back(where + ".loss_fn_inputs." + name + ": expected finite numbers");
        break;
      }
  }
}

}  // namespace

bool is_tinker_loss(const std::string& name) {
  return std::ranges::any_of(entries(), [&](const LossEntry& entry) { return entry.name == name; });
}

Result<std::unique_ptr<TinkerLoss>> make_tinker_loss(const ForwardBackwardRequest& request) {
  std::string names;
  for (const LossEntry& entry : entries()) {
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
    if (entry.name != request.loss) continue;
    std::vector<std::string> problems;
    LossSettings settings = loss_settings(entry, request, problems);
    for (std::size_t i = 0; i < request.data.size() && problems.size() < kMostProblems; ++i)
      check_datum(entry, request.data[i], "data[" + std::to_string(i) + "]", problems);
    if (!problems.empty()) return join_errors(problems);
    return std::unique_ptr<TinkerLoss>(std::make_unique<ListedLoss>(entry.function, std::move(settings)));
  }
  return Error{"loss_fn: expected one of " + names + ", or a method of Carnot (grpo + aem); found '" + request.loss +
               "'"};
}

}  // namespace carnot
