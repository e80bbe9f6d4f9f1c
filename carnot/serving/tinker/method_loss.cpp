#include "carnot/serving/tinker/method_loss.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>
#include <set>

#include "carnot/core/base/json.h"
#include "carnot/core/loss/loss.h"
#include "carnot/core/recompute/recompute_credit.h"
#include "carnot/core/rollout/log_prob_pass.h"
#include "carnot/core/train/packing.h"

namespace carnot {
namespace {

constexpr std::size_t kMostShown = 10;
constexpr const char* kRows = "data";  // as messages call them

/// Values of a datum's tokens; empty if it has none of this name.
std::vector<double> values_of(const TinkerDatum& datum, const std::string& name) {
  const auto found = datum.inputs.find(name);
  return found == datum.inputs.end() ? std::vector<double>() : found->second.values;
}

/// As a recipe has it: integers without a point.
std::string setting_text(const TinkerSetting& value) {
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr) return std::get<std::string>(value);
  const bool whole = *number == std::floor(*number) && std::abs(*number) < 1e15;
  return whole ? std::to_string(static_cast<std::int64_t>(*number)) : Json(*number).dump();
}

CreditRequest credit_request(const ForwardBackwardRequest& request) {
  CreditRequest credit{.file = kRows, .method = request.loss};
  for (const auto& [name, value] : request.settings) credit.overrides.push_back(name + "=" + setting_text(value));
  return credit;
}

void check_list(const TinkerDatum& datum, const std::string& name, bool required, const std::string& where,
                std::vector<std::string>& problems) {
  const auto found = datum.inputs.find(name);
  if (found == datum.inputs.end()) {
    if (required) problems.push_back(where + "misses " + name);
    return;
  }
  const std::size_t wanted = name == "group" || name == "score" ? 1 : datum.tokens.size();
  bool finite = found->second.values.size() == wanted;
  for (const double value : found->second.values) finite = finite && std::isfinite(value);
  if (!finite)
    problems.push_back(where + name + ": expected " +
                       (wanted == 1 ? "a number" : "a number for each of the " + std::to_string(wanted) + " tokens"));
}

void check_datum(const TinkerDatum& datum, const std::string& where, std::vector<std::string>& problems) {
  if (datum.tokens.empty()) return problems.push_back(where + "expected at least one token in model_input");
  const std::size_t before = problems.size();
  for (const char* name : {"target_tokens", "mask", "logprobs", "group", "score"})
    check_list(datum, name, true, where, problems);
  for (const char* name : {"turn", "action", "info_gain", "entropy_old"})
    check_list(datum, name, false, where, problems);
  if (problems.size() > before) return;
  const std::vector<double> targets = values_of(datum, "target_tokens");
  for (std::size_t i = 0; i + 1 < targets.size(); ++i)
    if (targets[i] != datum.tokens[i + 1])
      return problems.push_back(where + "target_tokens[" + std::to_string(i) + "]: expected the next token");
}

Status check_data(const ForwardBackwardRequest& request) {
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < request.data.size() && problems.size() < kMostShown; ++i)
    check_datum(request.data[i], "data[" + std::to_string(i) + "].loss_fn_inputs: ", problems);
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

/// All tokens of a datum, the last target included, and which of them were sampled.
MeasuredSequence sequence_of(const TinkerDatum& datum) {
  MeasuredSequence sequence{.tokens = datum.tokens};
  const std::vector<double> mask = values_of(datum, "mask");
  sequence.tokens.push_back(static_cast<TokenId>(values_of(datum, "target_tokens").back()));
  for (std::size_t i = 0; i < mask.size(); ++i)
    if (mask[i] != 0) sequence.targets.push_back(static_cast<int>(i) + 1);
  return sequence;
}

/// A list of the tokens with `values` on the sampled ones.
Json on_sampled(const MeasuredSequence& sequence, std::span<const double> values) {
  Json list(sequence.tokens.size(), Json());
  for (std::size_t k = 0; k < sequence.targets.size(); ++k)
    list[static_cast<std::size_t>(sequence.targets[k])] = values[k];
  return list;
}

std::vector<double> at_targets(const MeasuredSequence& sequence, const std::vector<double>& by_target) {
  std::vector<double> values;
  for (const int token : sequence.targets) values.push_back(by_target[static_cast<std::size_t>(token) - 1]);
  return values;
}

/// A turn begins with each run of sampled tokens, and with each new number in `turn` among them.
Json turns_of(const TinkerDatum& datum, const MeasuredSequence& sequence) {
  const std::vector<double> turn = values_of(datum, "turn"), gain = values_of(datum, "info_gain");
  std::vector<int> begins;
  for (std::size_t k = 0; k < sequence.targets.size(); ++k) {
    const int token = sequence.targets[k];
    const bool adjoins = k > 0 && sequence.targets[k - 1] == token - 1;
    if (!adjoins || (!turn.empty() && turn[token - 1] != turn[token - 2])) begins.push_back(token);
  }
  Json turns = Json::array();
  for (std::size_t t = 0; t < begins.size(); ++t) {
    const bool last = t + 1 == begins.size();
    Json one{{"start", t == 0 ? 0 : begins[t]},
             {"end", last ? static_cast<int>(sequence.tokens.size()) : begins[t + 1]}};
    if (last) one["reward"] = values_of(datum, "score").front();
    if (!gain.empty() && !last) one["info_gain"] = gain[static_cast<std::size_t>(begins[t]) - 1];
    turns.push_back(std::move(one));
  }
  return turns;
}

Json segments_of(const TinkerDatum& datum, const MeasuredSequence& sequence) {
  const std::vector<double> action = values_of(datum, "action");
  Json list = Json::array();
  std::size_t k = 0;
  for (int token = 0; token < std::ssize(sequence.tokens); ++token) {
    const bool sampled = k < sequence.targets.size() && sequence.targets[k] == token;
    if (sampled) ++k;
    list.push_back(sampled ? (action[static_cast<std::size_t>(token) - 1] != 0 ? "action" : "think")
                           : (k == 0 ? "prompt" : "observation"));
  }
  return list;
}

Json row_of(const TinkerDatum& datum, const MeasuredSequence& sequence, std::size_t number) {
  Json mask(sequence.tokens.size(), 0);
  for (const int token : sequence.targets) mask[static_cast<std::size_t>(token)] = 1;
  const Json log_probs = on_sampled(sequence, at_targets(sequence, values_of(datum, "logprobs")));
  Json row{{"uid", Json(values_of(datum, "group").front()).dump()},
           {"traj_id", std::to_string(number)},
           {"score", values_of(datum, "score").front()},
           {"token_ids", sequence.tokens},
           {"loss_mask", std::move(mask)},
           {"turns", turns_of(datum, sequence)},
           {"logp_old", log_probs},
           {"logp_rollout", log_probs}};
  if (datum.inputs.contains("action")) row["segment"] = segments_of(datum, sequence);
  if (datum.inputs.contains("entropy_old"))
    row["entropy_old"] = on_sampled(sequence, at_targets(sequence, values_of(datum, "entropy_old")));
  return row;
}

/// Adds what the method reads and can be measured here.
void measure(std::vector<Json>& rows, std::span<const MeasuredSequence> sequences, const Method& method,
             const Model& policy, const Model& reference, int most_rows) {
  const at::NoGradGuard no_gradients;
  const std::set<Measurement> needs = measurements(method);
  const auto add = [&](const char* name, const std::vector<double>& values, double sign) {
    std::size_t first = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::vector<double> own;
      for (std::size_t k = 0; k < sequences[i].targets.size(); ++k) own.push_back(sign * values[first + k]);
      first += own.size();
      if (!rows[i].contains(name)) rows[i][name] = on_sampled(sequences[i], own);
    }
  };
  if (needs.contains(Measurement::OldPolicy))
    add("entropy_old", measure_targets(policy, sequences, most_rows, 1).entropy, 1);
  if (!needs.contains(Measurement::Reference)) return;
  const TargetStatistics measured = measure_targets(reference, sequences, most_rows, 1);
  add("logp_ref", measured.log_prob, 1);
  add("entropy_ref", measured.entropy, 1);
  add("energy_ref", measured.logsumexp, -1);
}

/// The objective's own needs, as the update reads them.
std::vector<ColumnNeed> needs_of_objective(const Method& method) {
  std::vector<ColumnNeed> needs;
  if (method.objective.kl_coefficient != 0)
    needs.push_back({.column = Column::LogProbReference, .reader = "objective.kl_coefficient"});
  return needs;
}

Result<CreditedRows> credited(const ForwardBackwardRequest& request, const Model& policy, const Model& reference,
                              int most_rows) {
  const CreditRequest wanted = credit_request(request);
  CARNOT_ASSIGN_OR_RETURN(const Method method, read_method(wanted));
  const ObjectiveOptions& objective = method.objective;
  if (objective.value_coefficient > 0)
    return Error{"loss_fn: " + request.loss + " needs a critic, which this API does not have"};
  if (objective.reduction == Reduction::TokenSumOverConstant && objective.reduction_constant == 0)
    return Error{"loss_fn_config: objective.reduction_constant: expected the divisor, which " + request.loss +
                 " needs"};
  std::vector<Json> rows;
  std::vector<MeasuredSequence> sequences;
  for (std::size_t i = 0; i < request.data.size(); ++i) {
    sequences.push_back(sequence_of(request.data[i]));
    if (sequences.back().targets.empty())
      return Error{"data[" + std::to_string(i) + "].loss_fn_inputs: mask: expected at least one sampled token"};
    rows.push_back(row_of(request.data[i], sequences.back(), i));
  }
  measure(rows, sequences, method, policy, reference, most_rows);
  std::string text;
  for (const Json& row : rows) text += json_line(row) + "\n";
  return credit_rows_of(wanted, std::move(text), needs_of_objective);
}

class MethodPass {
 public:
  MethodPass(const Model& policy, const CreditedRows& rows, const ForwardBackwardRequest& request)
      : policy_(policy), rows_(rows), request_(request) {
    output_.num_data = std::ssize(request.data);
    for (const TinkerDatum& datum : request.data) output_.columns["logprobs"].emplace_back(datum.tokens.size());
  }

  void take(const MicroBatch& batch) {
    if (batch.targets_T.numel() == 0) return;
    const ObjectiveOptions& objective = rows_.method.objective;
    const LossInputs inputs = policy_inputs(policy_, batch, {.entropy_clamp = objective.entropy_clamp});
    const Loss loss = policy_loss(objective, inputs, batch.step);
    if (!request_.forward_only) loss.total.backward();
    loss_ += loss.total.item<double>();
    for (const MetricSum& metric : loss.metrics) {
      metrics_[metric.name].first += metric.sum;
      metrics_[metric.name].second += metric.count;
    }
    const std::vector<double> log_probs = to_doubles(inputs.logprob_T.detach());
    for (std::size_t t = 0; t < log_probs.size(); ++t) put(batch.places[t], log_probs[t]);
  }

  ForwardBackwardOutput result() {
    output_.metrics["loss:sum"] = loss_;
    for (const auto& [name, sum] : metrics_)
      if (sum.second > 0) output_.metrics[name + ":mean"] = sum.first / sum.second;
    return std::move(output_);
  }

 private:
  void put(const TokenPlace& place, double log_prob) {
    const int datum = rows_.file.line_of_row[static_cast<std::size_t>(place.trajectory)] - 1;
    output_.columns["logprobs"][static_cast<std::size_t>(datum)][static_cast<std::size_t>(place.token) - 1] =
        static_cast<float>(log_prob);
  }

  const Model& policy_;
  const CreditedRows& rows_;
  const ForwardBackwardRequest& request_;
  ForwardBackwardOutput output_{};
  double loss_ = 0;
  std::map<std::string, std::pair<double, double>> metrics_{};
};

}  // namespace

bool is_method(const std::string& loss) { return parse_method(loss).ok(); }

Result<ForwardBackwardOutput> method_forward_backward(const Model& policy, const Model& reference,
                                                      const ForwardBackwardRequest& request, int micro_batch_tokens) {
  CARNOT_RETURN_IF_ERROR(check_data(request));
  CARNOT_ASSIGN_OR_RETURN(const auto rows, credited(request, policy, reference, micro_batch_tokens));
  const ObjectiveOptions& objective = rows.method.objective;
  std::vector<int> step;
  for (int i = 0; i < std::ssize(rows.all); ++i) step.push_back(i);
  const auto batches = pack(rows.all, rows.credit, step,
                            {.max_tokens = micro_batch_tokens,
                             .sequence = objective.sequence,
                             .whole_trajectories = true,
                             .share_prefixes = true,
                             .constant = objective.reduction_constant,
                             .entropy_scale = objective.entropy_scale});
  const at::AutoGradMode gradients(!request.forward_only);
  MethodPass pass(policy, rows, request);
  for (const MicroBatch& batch : batches) pass.take(batch);
  return pass.result();
}

}  // namespace carnot
