#include "carnot/core/rollout/rollout.h"

#include "carnot/core/base/check.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/rollout/group_rollout.h"

namespace carnot {
namespace {

constexpr double kSecondsForCallsToEnd = 1;

class RolloutLoop {
 public:
  RolloutLoop(Engine& engine, const ChatFamily& chat, const BranchPolicy& policy, std::span<const RolloutTask> tasks,
              const RolloutOptions& options, const RolloutKey& key, const RolloutEvents& events)
      : events_(events),
        workers_(options.environment_threads, options.environment_timeout),
        copier_(1, options.environment_timeout),
        context_{.engine = engine,
                 .chat = chat,
                 .policy = policy,
                 .options = options,
                 .key = key,
                 .workers = workers_,
                 .copier = copier_,
                 .events = events_,
                 .policy_version = key.policy_version} {
    for (const RolloutTask& task : tasks)
      groups_.push_back(std::make_unique<GroupRollout>(context_, task, static_cast<int>(groups_.size())));
  }

  Rollout run() {
    const Stopwatch watch;
    const EngineMetrics before = context_.engine.metrics();
    for (const auto& group : groups_) group->open();
    while (advance()) {
      tell_progress();
      if (!context_.may_continue()) return abandon();
      take_newer_weights();
    }
    tell_progress();
    Rollout out{.metrics = metrics_};
    for (const auto& group : groups_) {
      for (std::string& failure : group->failures()) out.failures.push_back(std::move(failure));
      out.groups.push_back(group->take_group());
    }
    add_counts(out, before);
    out.metrics.seconds = watch.seconds();
    return out;
  }

 private:
  void tell_progress() {
    if (!events_.on_progress) return;
    std::int64_t ended = 0;
    for (const auto& group : groups_) ended += group->num_ended();
    if (ended != told_) events_.on_progress(ended);
    told_ = ended;
  }

  void take_newer_weights() {
    if (!events_.newer_weights) return;
    const std::optional<int> version = events_.newer_weights();
    if (!version) return;
    context_.policy_version = *version;
    context_.engine.forget_computed();
    ++metrics_.weight_swaps;
  }

  // Running calls get a moment to end, since the environments' factory may soon be destroyed.
  Rollout abandon() {
    workers_.drop_queued();
    const Stopwatch watch;
    for (EnvironmentWorkers* calls : {&workers_, &copier_})
      while (calls->pending() > 0 && watch.seconds() < kSecondsForCallsToEnd) calls->collect(true);
    for (const auto& group : groups_) group->abandon();
    return {.stopped = true};
  }

  // Handles what has happened, then computes one engine step or waits. False once every group is finished.
  bool advance() {
    collect_calls(false);
    bool unfinished = false;
    for (const auto& group : groups_) {
      group->poll();
      unfinished = unfinished || !group->finished();
    }
    if (context_.engine.has_work()) {
      const StepResult& result = context_.engine.step();
      // Before the tokens: handling these may reuse the sequences' numbers.
      for (const ScoredAnswer& scored : result.scores) group(context_.owners[scored.sequence]).on_score(scored);
      for (const SampledToken& token : result.tokens) {
        const Owner& owner = context_.owners[token.sequence];
        group(owner).on_token(owner.member, token);
      }
      for (SequenceId sequence : result.too_long) {
        const Owner owner = context_.owners[sequence];
        group(owner).on_too_long(owner.member);
      }
      idle_polls_ = 0;
    } else if (workers_.pending() > 0) {
      const Stopwatch watch;
      collect_calls(true);
      metrics_.seconds_waiting += watch.seconds();
      idle_polls_ = 0;
    } else {
      CARNOT_CHECK(!unfinished || ++idle_polls_ < 4, "trajectories are unfinished, but no event is due");
    }
    return unfinished;
  }

  void collect_calls(bool wait) {
    for (const FinishedCall& call : workers_.collect(wait)) {
      ++metrics_.environment_calls;
      metrics_.seconds_environment += call.seconds;
      const Owner owner = Owner::of(call.tag);
      group(owner).on_call(owner.member, call);
    }
  }

  GroupRollout& group(const Owner& owner) { return *groups_[owner.group]; }

  void add_counts(Rollout& out, const EngineMetrics& before) const {
    RolloutMetrics& metrics = out.metrics;
    for (const Group& group : out.groups) {
      for (const Tree& tree : group.trees) {
        metrics.turns += static_cast<std::int64_t>(tree.turns.size());
        metrics.trajectories += static_cast<std::int64_t>(tree.leaves.size());
        for (const Leaf& leaf : tree.leaves) metrics.infra_failures += leaf.valid() ? 0 : 1;
      }
    }
    const EngineMetrics& now = context_.engine.metrics();
    metrics.branches = context_.branches;
    metrics.sampled_tokens = now.sampled_tokens - before.sampled_tokens;
    metrics.computed_rows = now.rows - before.rows;
    metrics.engine_steps = now.steps - before.steps;
    metrics.evictions = now.evictions - before.evictions;
    metrics.seconds_forward = now.seconds_forward - before.seconds_forward;
    metrics.seconds_sampling = now.seconds_sampling - before.seconds_sampling;
    metrics.seconds_scheduling = now.seconds_scheduling - before.seconds_scheduling;
  }

  const RolloutEvents& events_;
  std::int64_t told_ = 0;
  EnvironmentWorkers workers_, copier_;
  RolloutContext context_;
  std::vector<std::unique_ptr<GroupRollout>> groups_;
  RolloutMetrics metrics_;
  int idle_polls_ = 0;
};

}  // namespace

void RolloutOptions::fields(FieldVisitor& visit) {
  visit.field("group_size", group_size, "trajectories per task", at_least(1));
  sampling.fields(visit);
  episode.fields(visit);
  constexpr double kWeek = 7 * 24 * 3600;
  visit.field("environment_threads", environment_threads,
              "concurrent calls of environments, each on a thread; threads are started as calls queue up",
              between(1, kMaxEnvironmentThreads));
  visit.field("environment_timeout", environment_timeout, "seconds that one call of an environment may take",
              Limits{.low = 0, .high = kWeek, .open_low = true});
}

Rollout roll_out(Engine& engine, const ChatFamily& chat, const BranchPolicy& policy, std::span<const RolloutTask> tasks,
                 const RolloutOptions& options, const RolloutKey& key, const RolloutEvents& events) {
  return RolloutLoop(engine, chat, policy, tasks, options, key, events).run();
}

}  // namespace carnot
