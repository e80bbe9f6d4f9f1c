// What the published implementations compute on random cases, recorded in float64 (see the data folder's README).
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/loss/kl.h"
#include "carnot/core/loss/loss.h"
#include "carnot/core/loss/reduction.h"
#include "testing/loss_tensors.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using reference::LossSequences;
using reference::LossToken;

std::vector<Json> recorded(const std::string& file) {
  const auto text = read_maybe_compressed(recorded_path("credit/") + file + ".jsonl.xz");
  EXPECT_TRUE(text.ok()) << text.error().message;
  std::vector<Json> cases;
  for (std::string_view line : split_lines(*text)) cases.push_back(Json::parse(line));
  return cases;
}

/// The sampled tokens. `edit(trajectory, token index, json, token)` fills what a rule needs beyond the common fields.
template <class Edit>
LossSequences sampled_tokens(const Json& recorded_case, const Edit& edit) {
  LossSequences sequences;
  const Json& trajectories = recorded_case["trajectories"];
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    auto& sequence = sequences.emplace_back();
    const Json& tokens = trajectories[i]["tokens"];
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const Json& json = tokens[t];
      if (!json["sampled"].get<bool>()) continue;
      LossToken token{.logprob = json.value("logp", 0.0),
                      .logprob_old = json.value("logp_old", 0.0),
                      .logprob_rollout = json.value("logp_behave", 0.0),
                      .logprob_reference = json.value("logp_ref", 0.0),
                      .entropy = json.value("entropy", 0.0),
                      .value = json.value("value", 0.0),
                      .value_old = json.value("value_old", 0.0),
                      .value_target = json.value("return", 0.0),
                      .advantage = json.value("advantage", 0.0),
                      .turn = json["turn"]};
      edit(i, t, json, token);
      sequence.push_back(token);
    }
  }
  return sequences;
}
LossSequences sampled_tokens(const Json& recorded_case) {
  return sampled_tokens(recorded_case, [](std::size_t, std::size_t, const Json&, LossToken&) {});
}

/// Per-token numbers of the sampled tokens, in the order of sampled_tokens().
std::vector<double> of_sampled(const Json& recorded_case, const std::string& field) {
  std::vector<double> values;
  const Json& trajectories = recorded_case["trajectories"];
  for (std::size_t i = 0; i < trajectories.size(); ++i)
    for (std::size_t t = 0; t < trajectories[i]["tokens"].size(); ++t)
      if (trajectories[i]["tokens"][t]["sampled"].get<bool>())
        values.push_back(recorded_case["expected"][field][i][t].get<double>());
  return values;
}

Reduction reduction_of(const std::string& aggregation) {
  if (aggregation == "token-mean") return Reduction::TokenMean;
  if (aggregation == "seq-mean-token-sum") return Reduction::SequenceMeanTokenSum;
  if (aggregation == "seq-mean-token-sum-norm") return Reduction::TokenSumOverConstant;
  EXPECT_TRUE(aggregation.starts_with("seq-mean-token-mean")) << aggregation;
  return Reduction::SequenceMeanTokenMean;
}

/// How a code base divides. HEAD: n tokens, rows with tokens, c_i + 1e-8. Legacy: n + 1e-8 tokens, all rows, c_i.
enum class Divides { Head, Legacy, Plain };

Denominators denominators(const Json& options, const LossSequences& sequences, Divides divides) {
  Denominators step = testing::denominators_of(sequences);
  const Json normaliser = options.value("normaliser", Json::object());
  step.constant = normaliser.value("loss_scale_factor", options.value("padded_length", 0.0));
  if (divides == Divides::Legacy) {
    step.tokens += 1e-8;
    step.sequences = static_cast<double>(sequences.size());
  }
  if (divides == Divides::Head)
    for (double& count : step.sequence_tokens) count += 1e-8;
  step.tokens = normaliser.value("batch_num_tokens", step.tokens);
  step.sequences = normaliser.value("global_batch_size", step.sequences);
  step.weight = step.tokens;
  step.sequence_weight = step.sequence_tokens;
  return step;
}

double largest_error(const at::Tensor& actual, const std::vector<double>& expected) {
  EXPECT_EQ(actual.numel(), static_cast<std::int64_t>(expected.size()));
  double worst = 0;
  for (std::size_t t = 0; t < expected.size(); ++t)
    worst = std::max(worst, std::fabs(actual.const_data_ptr<double>()[t] - expected[t]) / (1 + std::fabs(expected[t])));
  return worst;
}

constexpr double kTolerance = 1e-9;

double metric_or_nan(const Loss& loss, const std::string& name) {
  for (const MetricSum& m : loss.metrics)
    if (m.name == name) return m.sum / m.count;
  return std::nan("");
}

/// Compares loss and gradient with the recorded ones.
void expect_recorded(const Json& recorded_case, const ObjectiveOptions& options, const LossSequences& sequences,
                     const Denominators& step) {
  const LossInputs inputs = testing::inputs_of(sequences);
  const Loss loss = policy_loss(options, inputs, step);
  loss.total.backward();
  const double expected = recorded_case["expected"]["loss"];
  EXPECT_NEAR(loss.total.item<double>(), expected, kTolerance * (1 + std::fabs(expected))) << recorded_case["id"];
  EXPECT_LE(largest_error(inputs.logprob_T.grad(), of_sampled(recorded_case, "grad_logp")), kTolerance)
      << recorded_case["id"];
  for (const auto& [field, name] :
       {std::pair("clipfrac", "actor/pg_clipfrac"), std::pair("clipfrac_lower", "actor/pg_clipfrac_lower"),
        std::pair("approx_kl", "actor/ppo_kl")})
    if (recorded_case["expected"].contains(field)) {
      // These means are over n + 1e-8 tokens there.
      const auto n = static_cast<double>(inputs.logprob_T.numel());
      EXPECT_NEAR(metric_or_nan(loss, name) * n / (n + 1e-8), recorded_case["expected"][field].get<double>(),
                  kTolerance)
          << recorded_case["id"] << " " << field;
    }
}

TEST(RecordedLosses, ClippedPolicyLossOfVerlAndVerlAgent) {
  int compared = 0;
  for (const Json& c : recorded("loss_vanilla")) {
    const Json& o = c["options"];
    const bool legacy = c["rule"] == "ppo_clip_legacy";
    ObjectiveOptions options{.clip_low = o["eps_low"],
                             .clip_high = o["eps_high"],
                             .dual_clip = o["dual_clip"],
                             .reduction = reduction_of(o["aggregation"])};
    // The recorded rollout weight is given as a number per token; ours is a ratio of log-probabilities below a cap.
    const bool weighted = o["rollout_is_weight"];
    if (weighted) options.importance_cap = 1e9;
    const LossSequences sequences =
        sampled_tokens(c, [&](std::size_t, std::size_t, const Json& json, LossToken& token) {
          if (weighted) token.logprob_rollout = token.logprob_old - std::log(json["is_weight"].get<double>());
        });
    expect_recorded(c, options, sequences, denominators(o, sequences, legacy ? Divides::Legacy : Divides::Head));
    ++compared;
  }
  EXPECT_EQ(compared, 41);
}

TEST(RecordedLosses, SequenceRatioOfGspo) {
  int compared = 0;
  for (const Json& c : recorded("loss_gspo")) {
    const Json& o = c["options"];
    const ObjectiveOptions options{.ratio = RatioLevel::Sequence,
                                   .clip_low = o["eps_low"],
                                   .clip_high = o["eps_high"],
                                   .dual_clip = 0,
                                   .reduction = reduction_of(o["aggregation"])};
    const LossSequences sequences = sampled_tokens(c);
    expect_recorded(c, options, sequences, denominators(o, sequences, Divides::Head));
    ++compared;
  }
  EXPECT_EQ(compared, 21);
}

TEST(RecordedLosses, GradientPreservingClipAndEntropyScaleOfAepo) {
  int compared = 0;
  for (const Json& c : recorded("loss_aepo")) {
    const Json& o = c["options"];
    const ObjectiveOptions options{
        .clip_low = o["eps_low"],
        .clip_high = o["eps_high"],
        .dual_clip = o["dual_clip"],
        .clip_gradient = o["balanced_clipping"].get<bool>() ? ClipGradient::Preserve : ClipGradient::Zero,
        .reduction = reduction_of(o["aggregation"]),
        .entropy_scale = o["balanced_advantage"].get<bool>() ? o["a"].get<double>() : 0,
        .entropy_scale_over = EntropyScaleOver::CurrentMicroBatch};
    const LossSequences sequences = sampled_tokens(c);
    expect_recorded(c, options, sequences, denominators(o, sequences, Divides::Legacy));
    ++compared;
  }
  EXPECT_EQ(compared, 71);
}

TEST(RecordedLosses, TurnRatioAndScaledClipOfA2tgpo) {
  int compared = 0;
  for (const Json& c : recorded("loss_a2tgpo_turn")) {
    const Json& o = c["options"];
    const ObjectiveOptions options{.ratio = RatioLevel::Turn,
                                   .clip_low = o["eps_low"],
                                   .clip_high = o["eps_high"],
                                   .dual_clip = 0,
                                   .reduction = reduction_of(o["aggregation"])};
    const LossSequences sequences =
        sampled_tokens(c, [&](std::size_t i, std::size_t t, const Json& json, LossToken& token) {
          token.turn = c["expected"]["segment"][i][t];
          if (o["dynamic_clip"].get<bool>()) token.clip_scale = json["clip_scale"];
        });
    expect_recorded(c, options, sequences, denominators(o, sequences, Divides::Legacy));
    ++compared;
  }
  EXPECT_EQ(compared, 184);
}

double largest_log_ratio(const LossSequences& sequences) {
  double largest = 0;
  for (const auto& sequence : sequences)
    for (const LossToken& token : sequence) largest = std::max(largest, std::fabs(token.logprob - token.logprob_old));
  return largest;
}

TEST(RecordedLosses, TokenSequenceAndTurnLossesOfTreeGrpo) {
  std::map<std::string, int> compared;
  int outside_turns = 0, beyond_bound = 0;
  for (const Json& c : recorded("loss_tree_grpo")) {
    const Json& o = c["options"];
    const std::string rule = c["rule"];
    // Published turn numbers run from 1 to 9; a token outside them has ratio 0 there, which no option asks for.
    if (rule == "tree_grpo_turn" && o["turn_number"] != "turn+1") {
      ++outside_turns;
      continue;
    }
    const ObjectiveOptions options{.ratio = rule == "tree_grpo_gspo"   ? RatioLevel::Sequence
                                            : rule == "tree_grpo_turn" ? RatioLevel::Turn
                                                                       : RatioLevel::Token,
                                   .segment_gradient = SegmentGradient::Shared,
                                   .clip_low = o["eps_low"],
                                   .clip_high = o["eps_high"],
                                   .dual_clip = o["dual_clip"],
                                   .reduction = reduction_of(o["aggregation"])};
    const LossSequences sequences = sampled_tokens(c);
    // There a token's log-ratio is bounded before the sequence's mean is taken, here the mean itself is.
    if (rule == "tree_grpo_gspo" && largest_log_ratio(sequences) > 20) {
      ++beyond_bound;
      continue;
    }
    Denominators step = denominators(o, sequences, Divides::Plain);
    step.sequences = static_cast<double>(sequences.size());
    expect_recorded(c, options, sequences, step);
    ++compared[rule];
  }
  EXPECT_EQ(compared,
            (std::map<std::string, int>{{"tree_grpo_gspo", 90}, {"tree_grpo_dual_clip", 24}, {"tree_grpo_turn", 14}}));
  EXPECT_EQ(outside_turns, 4);
  EXPECT_EQ(beyond_bound, 6);
}

/// AReaL drops the surrogate of tokens whose behaviour weight exceeds the cap, where Carnot would truncate the weight:
/// their advantage becomes 0. Returns how many there are.
int drop_beyond_cap(LossSequences& sequences, double cap) {
  int dropped = 0;
  for (auto& sequence : sequences)
    for (LossToken& token : sequence) {
      if (std::exp(token.logprob_old - token.logprob_rollout) <= cap) continue;
      token.advantage = 0;
      ++dropped;
    }
  return dropped;
}

/// The sequence form takes the mean advantage of the sequence.
void average_advantages(LossSequences& sequences) {
  for (auto& sequence : sequences) {
    double sum = 0;
    for (const LossToken& token : sequence) sum += token.advantage;
    for (LossToken& token : sequence) token.advantage = sum / static_cast<double>(sequence.size());
  }
}

TEST(RecordedLosses, DecoupledLossOfAreal) {
  int compared = 0, dropping = 0;
  for (const Json& c : recorded("loss_areal")) {
    const Json& o = c["options"];
    const double cap = o["behav_imp_weight_cap"].is_null() ? 1e9 : o["behav_imp_weight_cap"].get<double>();
    const bool by_sequence = o["level"] == "sequence";
    const ObjectiveOptions options{.ratio = by_sequence ? RatioLevel::Sequence : RatioLevel::Token,
                                   .segment_gradient = SegmentGradient::Shared,
                                   .clip_low = o["eps_clip"],
                                   .clip_high = o["eps_clip_higher"].is_null() ? o["eps_clip"] : o["eps_clip_higher"],
                                   .dual_clip = o["c_clip"].is_null() ? 0.0 : o["c_clip"].get<double>(),
                                   .importance_cap = cap};
    LossSequences sequences = sampled_tokens(c);
    if (by_sequence) average_advantages(sequences);
    dropping += drop_beyond_cap(sequences, cap) > 0 ? 1 : 0;
    expect_recorded(c, options, sequences, denominators(o, sequences, Divides::Plain));
    ++compared;
  }
  EXPECT_EQ(compared, 41);
  EXPECT_EQ(dropping, 12);
}

TEST(RecordedLosses, ReductionsOfVerlAndVerlAgent) {
  int compared = 0;
  for (const Json& c : recorded("agg_loss")) {
    const LossSequences sequences = sampled_tokens(
        c, [](std::size_t, std::size_t, const Json& json, LossToken& token) { token.value = json["token_loss"]; });
    const LossInputs inputs = testing::inputs_of(sequences);
    const at::Tensor share_T =
        token_shares(reduction_of(c["options"]["aggregation"]), Counting::ByToken, inputs,
                     denominators(c["options"], sequences, c["rule"] == "agg_head" ? Divides::Head : Divides::Legacy));
    const double expected = c["expected"]["loss"];
    EXPECT_NEAR((share_T * inputs.value_T).sum().item<double>(), expected, kTolerance * (1 + std::fabs(expected)))
        << c["id"];
    EXPECT_LE(largest_error(share_T, of_sampled(c, "grad_token_loss")), kTolerance) << c["id"];
    ++compared;
  }
  EXPECT_EQ(compared, 144);
}

TEST(RecordedLosses, KlEstimatorsOfVerlAndVerlAgent) {
  int compared = 0;
  for (const Json& c : recorded("kl_penalty")) {
    const std::string name = c["options"]["estimator"];
    const KlEstimator estimator = name == "k1"    ? KlEstimator::K1
                                  : name == "abs" ? KlEstimator::Absolute
                                  : name == "k2"  ? KlEstimator::K2
                                                  : KlEstimator::K3;
    const LossInputs inputs = testing::inputs_of(sampled_tokens(c));
    const at::Tensor kl_T = kl_estimate(estimator, false, inputs.logprob_T, inputs.logprob_reference_T);
    EXPECT_LE(largest_error(kl_T.detach(), of_sampled(c, "kl")), kTolerance) << c["id"];
    kl_T.sum().backward();
    EXPECT_LE(largest_error(inputs.logprob_T.grad(), of_sampled(c, "grad_logp_of_sum")), kTolerance) << c["id"];
    ++compared;
  }
  EXPECT_EQ(compared, 96);
}

TEST(RecordedLosses, ClippedValueLossOfVerlAndItsOlderCopy) {
  int compared = 0;
  for (const Json& c : recorded("value_loss")) {
    const Json& o = c["options"];
    const ObjectiveOptions options{.reduction = reduction_of(o["aggregation"]),
                                   // Ours has the factor 1/2 of HEAD; the older copy has none.
                                   .value_coefficient = 2 * o["factor"].get<double>(),
                                   .value_clip = o["eps_v"]};
    const LossSequences sequences = sampled_tokens(c);
    const LossInputs inputs = testing::inputs_of(sequences);
    const Loss loss = policy_loss(
        options, inputs, denominators(o, sequences, c["rule"] == "value_clip" ? Divides::Head : Divides::Legacy));
    loss.total.backward();
    const double expected = c["expected"]["loss"];
    EXPECT_NEAR(loss.total.item<double>(), expected, kTolerance * (1 + std::fabs(expected))) << c["id"];
    EXPECT_LE(largest_error(inputs.value_T.grad(), of_sampled(c, "grad_value")), kTolerance) << c["id"];
    ++compared;
  }
  EXPECT_EQ(compared, 42);
}

}  // namespace
}  // namespace carnot
