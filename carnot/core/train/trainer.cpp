#include "carnot/core/train/trainer.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "carnot/core/base/log.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/loss/loss.h"
#include "carnot/core/nn/expert_balance.h"
#include "carnot/core/nn/token_statistics.h"
#include "carnot/core/rollout/info_gain.h"
#include "carnot/core/rollout/measure.h"
#include "carnot/core/rollout/measured_advantage.h"
#include "carnot/core/train/control_reward.h"
#include "carnot/core/train/infra_failures.h"
#include "carnot/core/train/step_metrics.h"

namespace carnot {

/// Seconds of each stage, by name.
struct Trainer::Clock {
  void lap(std::map<std::string, double>& metrics, const std::string& name) {
    metrics["timing_s/" + name] += watch.lap();
  }

  Stopwatch watch{};
};

void Trainer::Sums::add(const BatchReport& report) {
  for (const MetricSum& metric : report.metrics) {
    MetricSum& sum = metrics[metric.name];
    sum.sum += metric.sum;
    sum.count += metric.count;
  }
  compared_tokens += report.compared_tokens;
  difference += report.difference;
  largest_difference = std::max(largest_difference, report.largest_difference);
}

void Trainer::Sums::add(const std::string& name, double value) {
  metrics[name].sum += value;
  metrics[name].count += 1;
}

void Trainer::Sums::write(std::map<std::string, double>& out) const {
  for (const auto& [name, sum] : metrics) out[name] = sum.count > 0 ? sum.sum / sum.count : 0;
  if (compared_tokens == 0) return;
  out["rollout_corr/log_prob_abs_diff/mean"] = difference / compared_tokens;
  out["rollout_corr/log_prob_abs_diff/max"] = largest_difference;
}

namespace {

/// The KL coefficient that adaptive_kl steers: the one in the reward where that is used, else the one in the loss.
double& adapted_kl(ObjectiveOptions& objective) {
  return objective.kl_in_reward > 0 ? objective.kl_in_reward : objective.kl_coefficient;
}

/// Trajectories that count.
double num_counting(const std::vector<Group>& groups) {
  const auto all = trajectories(groups);
  return static_cast<double>(
      std::count_if(all.begin(), all.end(), [](const Trajectory& view) { return view.leaf().is_included(); }));
}

/// The coefficients in effect in a step.
void write_coefficients(const ObjectiveOptions& objective, std::map<std::string, double>& metrics) {
  if (objective.entropy_coefficient > 0) metrics["actor/entropy_coefficient"] = objective.entropy_coefficient;
  if (objective.kl_coefficient > 0) metrics["actor/kl_coef"] = objective.kl_coefficient;
  if (objective.kl_in_reward > 0) metrics["actor/reward_kl_penalty_coeff"] = objective.kl_in_reward;
}

/// Gives every turn its list, so that those which no update trains (a dropped leaf's) have one.
void add_log_prob_column(Tree& tree) {
  for (std::size_t turn = 0; turn < tree.turns.size(); ++turn)
    tree.columns.edit(Column::LogProbCurrent, static_cast<int>(turn), static_cast<int>(tree.turns[turn].tokens.size()));
}

/// Writes LogProbCurrent. Where a trajectory is trained several times (epochs, shared turns), the last value is kept.
void keep_log_probs(std::vector<Group>& groups, const std::vector<Trajectory>& views, const MicroBatch& batch,
                    const std::vector<double>& logprob) {
  for (std::size_t i = 0; i < batch.places.size(); ++i) {
    const Trajectory& view = views[batch.places[i].trajectory];
    const auto& offsets = view.turn_offsets;
    const auto k = std::upper_bound(offsets.begin(), offsets.end(), batch.places[i].token) - offsets.begin() - 1;
    const int turn = view.turns[k];
    Tree& tree = groups[view.group_index].trees[view.tree_index];
    if (!tree.columns.has(Column::LogProbCurrent)) add_log_prob_column(tree);
    const auto size = static_cast<int>(tree.turns[turn].tokens.size());
    std::vector<double>& values = tree.columns.edit(Column::LogProbCurrent, turn, size);
    values[batch.places[i].token - offsets[k]] = logprob[i];
  }
}

/// Tokens of all its trajectories, shared ones once: what a pass over the group costs.
std::int64_t num_tokens(const Group& group) {
  std::int64_t tokens = 0;
  for (const Tree& tree : group.trees) tokens += num_tokens(tree);
  return tokens;
}

void compare_with_rollout(const LossInputs& inputs, BatchReport& report) {
  if (!inputs.logprob_rollout_T.defined()) return;
  const at::NoGradGuard no_grad;
  const at::Tensor difference = (inputs.logprob_rollout_T - inputs.logprob_T.to(at::kCPU, at::kDouble)).abs();
  report.compared_tokens = static_cast<double>(difference.numel());
  report.difference = difference.sum().item<double>();
  report.largest_difference = difference.max().item<double>();
}

}  // namespace

Trainer::Trainer(Recipe& recipe, ModelBundle& bundle, Collectives& collectives)
    : recipe_(recipe),
      bundle_(bundle),
      collectives_(collectives),
      generation_(make_generation(bundle, recipe.rollout_settings(), recipe.step_trajectories(collectives.size()))),
      work_(collectives, recipe.train),
      optimizer_(work_.make_optimizer(optimizer_weights(bundle.policy->trained()), recipe.train.optimizer)),
      objective_(recipe.method.objective),
      entropy_coefficient_{.coefficient = objective_.entropy_coefficient},
      kl_coefficient_{.coefficient = adapted_kl(objective_)} {
  bundle_.policy->requires_grad(true);
  if (!bundle_.critic) return;
  bundle_.critic->requires_grad(true);
  critic_optimizer_ = work_.make_optimizer(optimizer_weights(bundle_.critic->parameters()), recipe.critic.optimizer);
}

std::map<std::string, double> Trainer::coefficients() const {
  std::map<std::string, double> all;
  if (objective_.adaptive_entropy.enabled) {
    all["entropy_coefficient"] = entropy_coefficient_.coefficient;
    all["entropy_coefficient_step"] = static_cast<double>(entropy_coefficient_.step);
  }
  if (objective_.adaptive_kl.enabled) all["kl_coefficient"] = kl_coefficient_.coefficient;
  return all;
}

void Trainer::set_coefficients(const std::map<std::string, double>& coefficients) {
  for (const auto& [name, value] : coefficients) {
    if (name == "entropy_coefficient") entropy_coefficient_.coefficient = value;
    if (name == "entropy_coefficient_step") entropy_coefficient_.step = static_cast<std::int64_t>(value);
    if (name == "kl_coefficient") kl_coefficient_.coefficient = value;
  }
  use_coefficients();
}

void Trainer::use_coefficients() {
  if (objective_.adaptive_entropy.enabled) objective_.entropy_coefficient = entropy_coefficient_.coefficient;
  if (objective_.adaptive_kl.enabled) adapted_kl(objective_) = kl_coefficient_.coefficient;
}

void Trainer::adapt_coefficients(const TrainingStep& out) {
  const auto metric = [&](const std::string& name) {
    const auto found = out.metrics.find(name);
    return found == out.metrics.end() ? std::optional<double>() : found->second;
  };
  const bool clamped = objective_.entropy_clamp > 0;
  if (const auto entropy = metric(clamped ? "actor/clamped_entropy" : "actor/entropy");
      entropy && objective_.adaptive_entropy.enabled)
    entropy_coefficient_.update(objective_.adaptive_entropy, *entropy);
  const bool in_reward = objective_.kl_in_reward > 0;
  if (const auto kl = metric(in_reward ? "actor/reward_kl_penalty" : "actor/kl_loss");
      kl && objective_.adaptive_kl.enabled)
    kl_coefficient_.update(objective_.adaptive_kl, *kl, num_counting(out.groups));
  use_coefficients();
}

std::optional<TrainingStep> Trainer::step(std::int64_t step, const RolloutEvents& events) {
  Clock total;
  auto measured = roll_out_and_measure(step, events);
  if (!measured || is_true_anywhere(collectives_, !events.go_on(), "signals of step " + std::to_string(step + 1)))
    return std::nullopt;
  TrainingStep& out = *measured;
  out.trained = check_failures(count_failures(out.groups), recipe_.train.max_infra_failures, out.failures);
  const std::string where = "training step " + std::to_string(step + 1);
  if (out.trained) out.trained = check_room(where, out.groups, recipe_.rollout.options.episode.max_context_tokens);
  if (!out.trained) return measured;
  Clock clock;
  const auto views = trajectories(out.groups);
  write_coefficients(objective_, out.metrics);
  const std::int64_t skipped = optimizer_->num_skipped(), updates = optimizer_->num_updates();
  update(step, views, out);
  if (optimizer_->num_skipped() > skipped)
    log_warning(where + ": " + std::to_string(optimizer_->num_skipped() - skipped) +
                " updates skipped, since a gradient is not finite");
  else if (optimizer_->num_updates() == updates)
    log_warning(where + ": no update: of " + std::to_string(out.groups.size()) + " groups in " +
                std::to_string(static_cast<int>(out.metrics.at("rollout/batches"))) + " batches " +
                (recipe_.method.filter.name == "none" ? "none counts" : recipe_.method.filter.name + " dropped all"));
  adapt_coefficients(out);
  clock.lap(out.metrics, "update_actor");
  total.lap(out.metrics, "step");
  double tokens = 0;
  for (const Trajectory& view : views) tokens += view.num_tokens();
  out.metrics["perf/total_num_tokens"] = tokens;
  out.metrics["perf/time_per_step"] = out.metrics["timing_s/step"];
  out.metrics["perf/throughput"] = tokens / out.metrics["timing_s/step"];
  return measured;
}

std::optional<TrainingStep> Trainer::roll_out_and_measure(std::int64_t step, const RolloutEvents& events) {
  TrainingStep out;
  Clock clock;
  if (!roll_out_groups(step, events, out, clock)) return std::nullopt;
  measure(out.groups, events);
  if (recipe_.measurements().contains(Measurement::OldPolicy))
    out.metrics["rollout_corr/reused"] = old_log_probs().reused_share(out.groups);
  clock.lap(out.metrics, "score");
  const auto views = trajectories(out.groups);
  out.credit = run_credit(credit_chain(recipe_.method, objective_.kl_in_reward), views);
  clock.lap(out.metrics, "adv");
  out.metrics.merge(trajectory_metrics(views, recipe_.environment_name));
  out.metrics["rollout/duplicate_tasks"] = duplicate_tasks(out.groups);
  out.metrics.merge(credit_metrics(views, out.credit));
  out.metrics.merge(mismatch_metrics(views, objective_.importance_cap));
  if (const auto kl = kl_to_reference(views); kl && objective_.kl_in_reward > 0)
    out.metrics["actor/reward_kl_penalty"] = *kl;
  clock.lap(out.metrics, "metrics");
  return out;
}

Rollout Trainer::roll_out_once(std::int64_t step, int refill, const RolloutEvents& events) {
  const StepTasks tasks = step_tasks(recipe_, step, refill, optimizer_->num_updates());
  const std::string what = "rollouts of step " + std::to_string(step + 1);
  if (elsewhere_)
    return roll_out_on_first_rank(
        collectives_, [&](const RolloutEvents& own) { return elsewhere_(tasks, own); }, events, what);
  return roll_out_together(collectives_, *generation_.engine, *bundle_.chat, *recipe_.method.branch,
                           rollout_tasks(recipe_, tasks), recipe_.rollout_options(), tasks.key, events, what);
}

bool Trainer::roll_out_groups(std::int64_t step, const RolloutEvents& events, TrainingStep& out, Clock& clock) {
  const GroupFilter& filter = recipe_.method.filter;
  int kept = 0, refill = 0;
  do {
    Rollout rollout = roll_out_once(step, refill, events);
    if (rollout.stopped) return false;
    warn_of_failures("rollout", rollout.failures);
    for (Group& group : rollout.groups) group.step = step + 1;
    replace_rewards(recipe_.train.reward, static_cast<std::uint64_t>(recipe_.run.seed), rollout.groups);
    std::move(rollout.failures.begin(), rollout.failures.end(), std::back_inserter(out.failures));
    for (const auto& [name, value] : rollout_metrics(rollout.metrics)) out.metrics[name] += value;
    kept += apply_filter(filter, rollout.groups);
    for (Group& group : rollout.groups) out.groups.push_back(std::move(group));
    ++refill;
  } while (kept < recipe_.train.groups_per_step && refill <= filter.max_refills);
  generation_.give_back_memory();
  out.metrics["perf/rollout_tokens_per_s"] =
      out.metrics["rollout/sampled_tokens"] / std::max(1e-9, out.metrics["timing_s/gen"]);
  out.metrics["rollout/batches"] = refill;
  out.metrics["rollout/groups_kept"] = kept;
  clock.lap(out.metrics, "rollout");
  return true;
}

void Trainer::update(std::int64_t step, const std::vector<Trajectory>& views, TrainingStep& out) {
  Sums sums;
  weights_changed_ = false;
  const bool over_step = objective_.entropy_scale_over == EntropyScaleOver::OldPolicyStep;
  const PackingOptions packing{
      .max_tokens = recipe_.train.micro_batch_tokens,
      .sequence = objective_.sequence,
      .whole_trajectories = objective_.ratio == RatioLevel::Sequence && objective_.sequence == SequenceUnit::Trajectory,
      .share_prefixes = recipe_.train.shared_prefixes == "once",
      .shards = work_.num_shards(),
      .constant = objective_.reduction_constant > 0
                      ? objective_.reduction_constant
                      : static_cast<double>(recipe_.rollout.options.episode.max_context_tokens),
      .entropy_scale = over_step ? objective_.entropy_scale : 0};
  for (int epoch = 0; epoch < recipe_.train.epochs; ++epoch) {
    const std::uint64_t seed = derive_seed(static_cast<std::uint64_t>(recipe_.run.seed), "minibatches",
                                           static_cast<std::uint64_t>(step * recipe_.train.epochs + epoch));
    for (const auto& part : split_minibatches(views, {.count = recipe_.train.mini_batches, .seed = seed})) {
      const std::vector<MicroBatch> batches = pack(views, out.credit, part, packing);
      const std::vector<BatchReport> reports = update_minibatch(step, batches, sums);
      for (std::size_t b = 0; b < batches.size(); ++b) {
        sums.add(reports[b]);
        keep_log_probs(out.groups, views, batches[b], reports[b].logprob);
      }
    }
  }
  sums.write(out.metrics);
  out.metrics["actor/skipped_updates"] = static_cast<double>(optimizer_->num_skipped());
}

std::vector<BatchReport> Trainer::update_minibatch(std::int64_t step, const std::vector<MicroBatch>& batches,
                                                   Sums& sums) {
  std::vector<BatchReport> reports = accumulate_all(step, batches);
  weights_changed_ = true;
  const bool critic_alone = critic_optimizer_ && step < recipe_.critic.head_start;
  const double rate = critic_alone ? 0 : learning_rate_at(recipe_.train.schedule, step, recipe_.train.steps);
  sums.add("actor/grad_norm", optimizer_->step(rate).grad_norm);
  sums.add("actor/lr", rate);
  if (!critic_optimizer_) return reports;
  const double critic_rate = learning_rate_at(recipe_.critic.schedule, step, recipe_.train.steps);
  sums.add("critic/grad_norm", critic_optimizer_->step(critic_rate).grad_norm);
  sums.add("critic/lr", critic_rate);
  return reports;
}

std::vector<BatchReport> Trainer::accumulate_all(std::int64_t step, const std::vector<MicroBatch>& batches) {
  const std::string what = "gradients of step " + std::to_string(step + 1);
  std::vector<std::int64_t> rows;
  for (const MicroBatch& batch : batches) rows.push_back(batch.tokens_R.numel());
  const auto total = static_cast<double>(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}));
  std::vector<BatchReport> reports(batches.size());
  const std::vector<int> owners = work_.accumulate(
      rows, what, [&](std::size_t b) { reports[b] = accumulate(batches[b], static_cast<double>(rows[b]) / total); });
  gather_reports(collectives_, owners, reports, what);
  return reports;
}

BatchReport Trainer::accumulate(const MicroBatch& batch, double share) {
  if (batch.targets_T.numel() == 0) return {};
  ExpertBalance balance(recipe_.train.router_aux_coefficient * share);
  const bool balanced = recipe_.train.router_aux_coefficient > 0;
  LossInputs inputs = policy_inputs(
      *bundle_.policy, batch,
      {.temperature = recipe_.rollout.options.sampling.temperature, .entropy_clamp = objective_.entropy_clamp},
      balanced ? &balance : nullptr);
  if (bundle_.critic)
    inputs.value_T = bundle_.critic->values(batch.tokens_R, batch.positions_R, batch.plan)
                         .index_select(0, batch.rows_T.to(bundle_.policy->options().device()));
  BatchReport report;
  if (!weights_changed_) compare_with_rollout(inputs, report);
  Loss loss = policy_loss(objective_, inputs, batch.step);
  loss.total.backward();
  report.metrics = std::move(loss.metrics);
  if (balanced) report.metrics.push_back({"actor/router_aux_loss", share * balance.loss(), share});
  const at::Tensor logprob_T = inputs.logprob_T.detach().to(at::kCPU, at::kDouble).contiguous();
  report.logprob.assign(logprob_T.const_data_ptr<double>(), logprob_T.const_data_ptr<double>() + logprob_T.numel());
  return report;
}

void Trainer::measure(std::vector<Group>& groups, const RolloutEvents& events) {
  if (recipe_.measurements().empty()) return;
  // Each rank measures its share of the groups, by tokens: a token's numbers do not depend on what is measured with it.
  std::vector<std::int64_t> sizes;
  for (const Group& group : groups) sizes.push_back(num_tokens(group));
  const std::vector<int> owners = shares_by_size(sizes, collectives_.size());
  std::vector<Group> own;
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (owners[g] == collectives_.rank()) own.push_back(std::move(groups[g]));
  measure_own(own, events);
  std::size_t next = 0;
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (owners[g] == collectives_.rank()) groups[g] = std::move(own[next++]);
  gather_groups(collectives_, owners, groups, "signals");
}

void Trainer::measure_own(std::vector<Group>& groups, const RolloutEvents& events) {
  const LogProbPassOptions options{.max_tokens = recipe_.rollout.log_prob_tokens,
                                   .temperature = recipe_.rollout.options.sampling.temperature};
  for (const Measurement measurement : recipe_.measurements()) {
    switch (measurement) {
      case Measurement::OldPolicy: old_log_probs().measure(groups, options); break;
      case Measurement::Reference: measure_reference(*bundle_.reference, groups, options); break;
      case Measurement::Values: measure_values(*bundle_.critic, groups, options); break;
      case Measurement::InfoGain:
        measure_info_gain(*bundle_.policy, *bundle_.tokenizer, groups, {.text = recipe_.answer_lead()},
                          recipe_.method.info_gain, options);
        break;
      case Measurement::Oracle: measure_by_continuations(groups, events); break;
    }
  }
}

void Trainer::measure_by_continuations(std::vector<Group>& groups, const RolloutEvents& events) {
  RolloutOptions options = recipe_.rollout.options;
  options.group_size = recipe_.method.continuations;
  const std::vector<std::string> failures =
      measure_advantages({.engine = engine(),
                          .chat = *bundle_.chat,
                          .options = options,
                          .seed = static_cast<std::uint64_t>(recipe_.run.seed),
                          .task = [&](const Group& group) { return training_task(recipe_, group.task_index); }},
                         groups, {.go_on = events.go_on});
  warn_of_failures("continuations", failures);
}

}  // namespace carnot
