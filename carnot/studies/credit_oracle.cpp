// studies/credit_oracle.cpp -- where the signal belongs, measured: values of states by continuations, the advantages
// that follow, and every method's credit against them.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/rollout/continuations.h"
#include "carnot/core/rollout/episode.h"
#include "carnot/core/run/progress.h"
#include "carnot/studies/continuation_file.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/gradient_quality.h"
#include "carnot/studies/gradient_sketch.h"
#include "carnot/studies/method_credit.h"
#include "carnot/studies/opened_policy.h"
#include "carnot/studies/oracle_plan.h"
#include "carnot/studies/oracle_report.h"

namespace carnot {
namespace {

constexpr int kContinuationsAtOnce = 256;

/// Rows of forward passes a second, by what the engine has done.
struct Speed {
  double rows = 0;
  double seconds = 0;
};

/// Runs the continuations of a plan, batch by batch, and keeps what is finished.
class ContinuationRuns {
 public:
  ContinuationRuns(OpenedPolicy& policy, Engine& engine, std::span<const Trajectory> all, const OraclePlan& plan,
                   int samples)
      : policy_(policy), engine_(engine), all_(all), plan_(plan), options_(policy.recipe.rollout.options) {
    options_.group_size = samples;
    options_.answer_scoring.reset();
    for (std::size_t first = 0; first < plan.states.size(); first += batch_size()) batches_.push_back(batch_of(first));
  }

  /// "612 states, ...": what is to be done, and how long it will take.
  std::string prediction(const ContinuationFile& kept, const Speed& speed) const {
    double rows = 0, tokens = 0;
    std::int64_t missing = 0;
    for (const Batch& batch : batches_) {
      if (kept.find(batch.key)) continue;
      for (std::size_t s = batch.first; s < batch.first + batch.tasks.size(); ++s) {
        const double left = options_.group_size * tokens_left(plan_.states[s]);
        tokens += left;
        rows += left + static_cast<double>(batch.tasks[s - batch.first].given->context.size());
        ++missing;
      }
    }
    std::string text = std::to_string(plan_.states.size()) + " states, " + std::to_string(options_.group_size) +
                       " continuations of each";
    if (missing < std::ssize(plan_.states)) text += ", " + std::to_string(missing) + " states left";
    return text + ": about " + number_text(tokens) + " tokens, " + clock_time(rows * speed.seconds / speed.rows) +
           " at the speed of the rollouts";
  }

  Result<std::vector<Continuations>> run(ContinuationFile& kept, const RunControl& control) {
    Progress progress(control.out, {.terminal = control.terminal, .columns = control.columns});
    std::vector<Continuations> all;
    std::int64_t done = 0;
    for (const Batch& batch : batches_) done += kept.find(batch.key) ? continuations_in(batch) : 0;
    progress.begin("continuations", std::ssize(plan_.states) * options_.group_size, done);
    for (const Batch& batch : batches_) {
      if (!kept.find(batch.key)) {
        CARNOT_RETURN_IF_ERROR(
            compute(batch, kept, control, [&](std::int64_t ended) { progress.update(done + ended); }));
        done += continuations_in(batch);
        progress.update(done);
      }
      const auto& states = *kept.find(batch.key);
      all.insert(all.end(), states.begin(), states.end());
    }
    progress.end();
    return all;
  }

  const std::vector<std::string>& failures() const { return failures_; }

 private:
  struct Batch {
    std::size_t first = 0;  ///< state
    std::vector<RolloutTask> tasks{};
    std::string key{};
  };

  std::size_t batch_size() const {
    return static_cast<std::size_t>(std::max(1, kContinuationsAtOnce / options_.group_size));
  }
  std::int64_t continuations_in(const Batch& batch) const { return std::ssize(batch.tasks) * options_.group_size; }

  /// What the recorded trajectory sampled after the state.
  double tokens_left(const OracleState& state) const {
    const Trajectory& one = all_[state.trajectory];
    int tokens = -state.begun;
    for (int k = state.turn; k < one.num_turns(); ++k) tokens += one.turn(k).num_sampled();
    return tokens;
  }

  RolloutKey rollout_key(const Batch& batch) const {
    return {.seed = derive_seed(static_cast<std::uint64_t>(policy_.recipe.run.seed), "credit-oracle"),
            .first_group = batch.first};
  }

  Batch batch_of(std::size_t first) const {
    Batch batch{.first = first};
    std::string identity = policy_.recipe.to_yaml() + policy_.checkpoint.string() + " " +
                           std::to_string(options_.group_size) + " " + std::to_string(first);
    for (std::size_t s = first; s < std::min(first + batch_size(), plan_.states.size()); ++s) {
      const OracleState& state = plan_.states[s];
      const Group& group = *all_[state.trajectory].group;
      const EnvironmentFactory& environment = *policy_.recipe.environment;
      batch.tasks.push_back(
          {.uid = group.uid,
           .environment = policy_.recipe.environment_name,
           .task_index = group.task_index,
           .make = [&environment, task = group.task_index] { return environment.make(Split::Validation, task); },
           .given = start_of(all_[state.trajectory], state.turn, state.begun)});
      identity += "\n" + group.uid;
      const GivenStart& given = *batch.tasks.back().given;
      for (const std::vector<TokenId>* tokens : {&given.context, &given.begun})
        for (const TokenId token : *tokens) identity += " " + std::to_string(token);
    }
    batch.key = sha256_hex(identity);
    return batch;
  }

  Status compute(const Batch& batch, ContinuationFile& kept, const RunControl& control,
                 const std::function<void(std::int64_t)>& on_progress) {
    ContinuedStates found =
        continue_from(engine_, *policy_.bundle.chat, batch.tasks, options_, rollout_key(batch),
                      {.on_progress = on_progress, .go_on = [&] { return !control.stop_requested(); }});
    if (found.stopped)
      return Error{"stopped; finished continuations are in " + kept.path().string() +
                   "; the same command continues with them"};
    failures_.insert(failures_.end(), found.failures.begin(), found.failures.end());
    return kept.add(batch.key, std::move(found.states));
  }

  OpenedPolicy& policy_;
  Engine& engine_;
  std::span<const Trajectory> all_;
  const OraclePlan& plan_;
  RolloutOptions options_;
  std::vector<Batch> batches_{};
  std::vector<std::string> failures_{};
};

/// The values of the plan's states.
std::vector<StateValue> values_of(const std::vector<Continuations>& continuations) {
  std::vector<std::vector<std::optional<double>>> scores;
  for (const Continuations& one : continuations) scores.push_back(one.scores);
  const auto levels = score_levels(scores);
  std::vector<StateValue> values;
  for (const auto& state : scores) values.push_back(value_of(state, levels));
  return values;
}

class CreditOracle final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    visit.field("tasks", tasks_, "validation tasks whose rollouts are evaluated", at_least(1));
    visit.field("trajectories", trajectories_, "of those rollouts, each depth and outcome in proportion", at_least(1));
    visit.field("samples", samples_, "continuations of each state", at_least(2));
    visit.field("gradients", gradients_,
                "whether the methods' gradients over the evaluated trajectories are compared, too: a forward and a "
                "backward pass for each trajectory and method");
    visit.field("methods", methods_, "whose credit is compared, as for `carnot compare`: \"grpo, grpo + aem\"; all");
    visit.field("reference", reference_,
                "checkpoint of the reference, for methods that need one; empty: the run's own");
  }

  Result<AnalysisReport> run(const AnalysisInput& input) override {
    CARNOT_ASSIGN_OR_RETURN(auto opened, open_policy(input.paths.front(), input.overrides));
    CARNOT_RETURN_IF_ERROR(load_companions(opened, reference_));
    const OpenedEnvironment environment = open_environment(opened.recipe.environment->make(Split::Validation, 0));
    if (environment.environment->branching() == Branching::Refused)
      return Error{"credit-oracle: " + opened.recipe.environment_name +
                   " can be neither cloned nor replayed: nothing can continue in the middle of an episode"};
    const Generation generation =
        make_generation(opened.bundle, opened.recipe.rollout,
                        std::max(kContinuationsAtOnce, tasks_ * opened.recipe.rollout.options.group_size));
    const Stopwatch watch;
    std::vector<Group> groups = roll_out(opened, *generation.engine, tasks_);
    const Speed speed{.rows = static_cast<double>(generation.engine->metrics().rows), .seconds = watch.seconds()};
    CARNOT_ASSIGN_OR_RETURN(const auto credits, method_credits(opened, groups, methods_, input.overrides));

    const std::vector<Trajectory> all = trajectories(groups);
    const auto seed = derive_seed(static_cast<std::uint64_t>(opened.recipe.run.seed), "credit-oracle");
    const OraclePlan plan = plan_oracle(all, choose_trajectories(all, trajectories_, seed), *opened.bundle.tokenizer,
                                        environment.protocol.think_tag);
    if (plan.turns.empty()) return Error{"credit-oracle: no trajectory was played to an end"};
    CARNOT_ASSIGN_OR_RETURN(auto kept, ContinuationFile::open(input.output / "credit-oracle.continuations.jsonl"));
    ContinuationRuns runs(opened, *generation.engine, all, plan, samples_);
    input.control.out << "credit-oracle: " << runs.prediction(kept, speed) << "\n" << std::flush;
    CARNOT_ASSIGN_OR_RETURN(const auto continuations, runs.run(kept, input.control));
    const std::vector<StateValue> values = values_of(continuations);
    CARNOT_RETURN_IF_ERROR(write_rollouts(groups, all, plan, values, *opened.bundle.tokenizer,
                                          input.output / "credit-oracle.rollouts.jsonl"));
    AnalysisReport report =
        oracle_report({.all = all, .plan = plan, .values = values, .credits = credits, .seed = seed});
    if (gradients_)
      CARNOT_RETURN_IF_ERROR(add_gradients_of(opened, all, plan, values, credits, seed, input.control, report));
    add_failures(runs.failures(), report);
    return report;
  }

 private:
  /// The rollouts, with what was measured as a field.
  static Status write_rollouts(std::vector<Group>& groups, std::span<const Trajectory> all, const OraclePlan& plan,
                               std::span<const StateValue> values, const Tokenizer& tokenizer,
                               const std::filesystem::path& path) {
    for (const OracleTurn& turn : plan.turns) {
      const Trajectory& one = all[static_cast<std::size_t>(turn.trajectory)];
      const int number = one.turns[static_cast<std::size_t>(turn.turn)];
      Tree& tree = groups[static_cast<std::size_t>(one.group_index)].trees[static_cast<std::size_t>(one.tree_index)];
      const Turn& tokens = tree.turns[static_cast<std::size_t>(number)];
      std::vector<double>& column =
          tree.columns.edit(Column::AdvantageOracle, number, static_cast<int>(tokens.tokens.size()));
      std::fill(column.begin() + tokens.sampled_begin, column.begin() + tokens.sampled_end,
                advantage_of(turn, values).turn);
    }
    return write_file_atomically(
        path, rollout_rows(groups, {}, [&](std::span<const TokenId> tokens) { return tokenizer.decode(tokens); }));
  }

  /// The credit of the trajectories whose advantages are all known, the oracle's first.
  static Status add_gradients_of(const OpenedPolicy& opened, std::span<const Trajectory> all, const OraclePlan& plan,
                                 std::span<const StateValue> values, const MethodCredits& credits, std::uint64_t seed,
                                 const RunControl& control, AnalysisReport& report) {
    const std::map<int, Credit> oracle = oracle_credit(all, plan, values);
    std::vector<MethodGradients> methods{{.name = "oracle"}};
    for (const MethodCredit& method : credits.methods) methods.push_back({.name = method.name});
    std::vector<int> tasks;
    const StatisticsOptions options{.temperature = opened.recipe.rollout.options.sampling.temperature};
    Progress progress(control.out, {.terminal = control.terminal, .columns = control.columns});
    progress.begin("gradients", std::ssize(oracle));
    opened.bundle.policy->requires_grad(true);
    for (const auto& [i, measured] : oracle) {
      if (control.stop_requested()) return Error{"stopped"};
      const Trajectory& one = all[static_cast<std::size_t>(i)];
      tasks.push_back(one.group_index);
      for (std::size_t m = 0; m < methods.size(); ++m)
        methods[m].by_trajectory.push_back(sketch_of_trajectory(
            *opened.bundle.policy, one, m == 0 ? measured : credits.methods[m - 1].table[static_cast<std::size_t>(i)],
            options, seed));
      progress.update(std::ssize(tasks));
    }
    opened.bundle.policy->requires_grad(false);
    progress.end();
    add_gradients(methods, tasks, seed, report);
    return Done{};
  }

  static void add_failures(const std::vector<std::string>& failures, AnalysisReport& report) {
    if (failures.empty()) return;
    report.notes.push_back(std::to_string(failures.size()) +
                           " continuations were lost to the infrastructure; the first: " + failures.front());
  }

  int tasks_ = 64;
  int trajectories_ = 200;
  int samples_ = 32;
  bool gradients_ = true;
  std::string methods_ = "all";
  std::string reference_{};
};

}  // namespace

std::unique_ptr<Analysis> credit_oracle() { return std::make_unique<CreditOracle>(); }

}  // namespace carnot
