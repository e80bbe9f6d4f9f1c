// rollout/rollout.h -- a step's tasks in, groups of trees out.
//
// Trajectories run one by one, without a barrier: while some wait for their environments on worker threads, the others
// decode. The prompt of a task is prefilled once and forked. Where the branch policy may branch, the trajectories of
// one task wait for each other where it decides, so that decisions are made in the order of the trajectories and see
// the same counts whatever the timing.
//
// What comes out does not depend on batch size, threads or the environments' latency (except for the reported
// latencies). If weights are swapped during the rollout, turns that are being sampled continue with the new ones: each
// token has the log-probability of the weights that sampled it, each turn the version of the oldest of them. An
// environment that fails, does not answer in time or breaks the bounds of env/environment_boundary.h ends its
// trajectory as InfraFailed; the others continue. A bug in an environment (CheckError) ends the rollout.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/branch/branch.h"
#include "carnot/core/data/measurement.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/engine/engine.h"
#include "carnot/core/env/environment.h"
#include "carnot/core/rollout/answer_prompt.h"
#include "carnot/core/rollout/episode.h"
#include "carnot/core/text/chat.h"

namespace carnot {

/// Information gains that are measured while sampling (rollout/info_gain.h measures them afterwards).
struct AnswerScoring {
  AnswerLead lead{};
  InfoGainOptions gain{};
};

struct RolloutOptions {
  int group_size = 8;  ///< trajectories per task
  SamplingOptions sampling{};
  EpisodeOptions episode{};
  int environment_threads = 2;
  double environment_timeout = 120;               ///< seconds that one call of an environment may take
  std::optional<AnswerScoring> answer_scoring{};  ///< fills Turn::info_gain and Group::query_baseline where it can

  void fields(FieldVisitor& visit);
};

/// The beginning of a recorded trajectory, from which those of a task continue: their environments are given its
/// responses, and must answer them as they did. Given tokens have NaN in all columns.
struct GivenStart {
  std::vector<std::vector<TokenId>> responses{};  ///< of the first turns, as they were sampled
  std::vector<TokenId> context{};                 ///< of the next turn, up to its response
  std::vector<TokenId> begun{};                   ///< the first tokens of its response, which continues after them
};

struct RolloutTask {
  std::string uid{};
  std::string environment{};  ///< name of its family, for messages
  std::int64_t task_index = 0;
  std::function<std::unique_ptr<Environment>()> make{};  ///< called on a worker thread
  /// None: trajectories start at the prompt. REQUIRES: the options that it was sampled with; no branches; no answers
  /// scored while sampling. After what is given, each sibling's environment makes new random draws
  /// (Environment::redraw).
  std::optional<GivenStart> given{};
};

/// The keys of the draws, and what is written into the turns.
struct RolloutKey {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::uint64_t first_group = 0;  ///< number of the first task in the step: refills continue the numbering
  int policy_version = 0;         ///< of the weights at the beginning
};

struct RolloutMetrics {
  std::int64_t trajectories = 0;
  std::int64_t branches = 0;
  std::int64_t turns = 0;  ///< shared ones once
  std::int64_t sampled_tokens = 0;
  std::int64_t computed_rows = 0;  ///< of all forward passes, prefill included
  std::int64_t engine_steps = 0;
  std::int64_t evictions = 0;
  std::int64_t infra_failures = 0;
  std::int64_t environment_calls = 0;
  double seconds = 0;
  double seconds_forward = 0;
  double seconds_sampling = 0;
  double seconds_scheduling = 0;
  double seconds_waiting = 0;      ///< nothing to decode until an environment answers
  double seconds_environment = 0;  ///< summed over worker threads
  std::int64_t weight_swaps = 0;   ///< during the rollout, by RolloutEvents::newer_weights
};

/// Callbacks: roll_out() reports its progress and asks whether to continue.
struct RolloutEvents {
  std::function<void(std::int64_t ended)> on_progress{};  ///< trajectories that have ended; may be null
  std::function<bool()> go_on = [] { return true; };      ///< called several times a second, on the caller's thread
  /// Called between two engine steps: may put newer weights in place, and then returns their version. May be null.
  std::function<std::optional<int>()> newer_weights{};
};

struct Rollout {
  bool stopped = false;         ///< go_on() said no: there are no groups
  std::vector<Group> groups{};  ///< in the order of the tasks
  RolloutMetrics metrics{};
  std::vector<std::string> failures{};  ///< infrastructure failures, one sentence each: by task, then by trajectory
};

/// Rolls out every task with `options.group_size` trajectories. Fills the columns LogProbRollout and EntropyRollout. If
/// `events` stop it early, nothing of it is left in the engine.
Rollout roll_out(Engine& engine, const ChatFamily& chat, const BranchPolicy& policy, std::span<const RolloutTask> tasks,
                 const RolloutOptions& options, const RolloutKey& key, const RolloutEvents& events = {});

}  // namespace carnot
