// train/options.h -- the options of a run, section by section, as recipes name them.
//
// Every number a user can set is in one `fields` list, here or in the options of the room that it belongs to;
// parsing, config.yaml, --help and the docs come from those lists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/nn/model_config.h"
#include "carnot/core/optim/options.h"
#include "carnot/core/optim/schedule.h"
#include "carnot/core/rollout/rollout.h"

namespace carnot {

/// Top level.
struct RunOptions {
  std::int64_t seed = 0;
  int threads = 0;  ///< of the kernels; 0: one per processor
  std::string device = "cpu";
  std::string dtype = "auto";  ///< auto | float32 | float64 | bfloat16; ModelBundle::open() settles "auto"
  std::string run_folder = "runs/run";
  std::string resume = "never";           ///< never | auto | a checkpoint folder
  std::string resume_changes = "refuse";  ///< refuse | allow: settings other than the recorded ones

  void fields(FieldVisitor& visit);
};

/// `model.*`: a checkpoint folder, or the shape of a random model.
struct ModelOptions {
  std::string path{};     ///< Hugging Face folder; empty: random weights of `shape`
  std::string adapter{};  ///< PEFT folder applied to the model; decides on lora.*
  double init_std = 0.05;
  ModelConfig shape{};

  void fields(FieldVisitor& visit);
};

/// `tokenizer.*`: where there is no model folder, a small tokenizer is trained from the environment's texts.
struct TokenizerOptions {
  std::string path{};
  int vocab_size = 0;  ///< of a trained one; 0: just bytes, tags and protected words
  std::string chat = "auto";
  bool control_tokens_in_messages = false;

  void fields(FieldVisitor& visit);
};

/// `sft.*`: supervised fine-tuning on demonstrations.
struct SftOptions {
  std::int64_t steps = 0;             ///< 0: none
  std::vector<std::string> source{};  ///< files of rows; empty: the environment's scripted agent demonstrates
  double held_out_share = 0.1;        ///< of those rows
  int batch_tokens = 2048;
  double context_weight = 0.3;  ///< weight of the loss on tokens that were not said by whoever demonstrates
  ScheduleOptions schedule{
      .learning_rate = 3e-3, .warmup_steps = 30, .decay = "linear", .decay_start = 0.5, .final_share = 0.05};
  OptimizerOptions optimizer{.beta2 = 0.98, .weight_decay = 0.05};
  std::int64_t log_every = 50;
  std::int64_t eval_every = 100;  ///< steps between measurements of the held-out loss; 0: at the end only

  void fields(FieldVisitor& visit);
};

/// `rollout.workers*` and what goes with it: rollouts by workers (docs/workers.md). No key is among them: recipes are
/// written down.
struct WorkerOptions {
  std::string address{};  ///< of a NATS server; empty: this process rolls out
  std::string listen = "127.0.0.1";
  int port = 0;
  std::string url{};
  std::string key_variable{};
  std::string credentials{};
  std::string authority{};
  std::string certificate{};
  std::string private_key{};
  int task_groups = 1;
  double lease_seconds = 30;
  int uploads = 8;                       ///< of weights at a time; 0: any number
  std::int64_t max_staleness = 0;        ///< updates between the weights that sampled and those that are updated
  bool in_flight_updates = false;        ///< workers take new weights in the middle of a task
  std::string other_kernels = "refuse";  ///< refuse | recompute: workers whose kernels give other bits

  bool is_asynchronous() const { return max_staleness > 0; }
  bool takes_other_kernels() const { return other_kernels == "recompute"; }

  void fields(FieldVisitor& visit);
};

/// `rollout.*`
struct RolloutSettings {
  RolloutOptions options{};
  EngineOptions engine{};
  int cache_tokens = 0;                ///< positions that the KV cache holds; 0: enough for all trajectories of a step
  std::string old_log_probs = "auto";  ///< auto | recompute | rollout: where LogProbOld comes from
  int log_prob_tokens = 4096;          ///< of one log-prob pass
  std::vector<std::string> extra_signals{};  ///< signals that are measured and written though no method asks for them
  std::string answer_lead{};  ///< what precedes the answer in an information gain pass; empty: the environment's own
  WorkerOptions workers{};

  void fields(FieldVisitor& visit);
};

/// `train.*`
struct TrainOptions {
  std::int64_t steps = 100;
  double task_epochs = 0;               ///< passes over the environment's tasks, instead of `steps`; 0: `steps` counts
  std::int64_t max_sampled_tokens = 0;  ///< training ends with the step that reaches it; 0: no limit
  int groups_per_step = 16;             ///< tasks per step
  int epochs = 1;                       ///< passes over a step's trajectories
  int mini_batches = 1;                 ///< optimizer steps per pass
  int micro_batch_tokens = 4096;
  std::string shared_prefixes =
      "once";  ///< once | repeated: how prefixes that trajectories or demonstrations share are computed
  bool activation_checkpointing = false;  ///< layers run again in the backward pass
  double router_aux_coefficient = 0;  ///< of nn/expert_balance.h's loss, a mean over an update's micro-batches by rows
  ScheduleOptions schedule{};
  OptimizerOptions optimizer{};
  std::int64_t save_every = 0;  ///< steps between checkpoints; 0: by time and at the end only
  double save_minutes = 10;     ///< since the last checkpoint, after which the next step's end writes one; 0: never
  std::int64_t max_checkpoints = 2;
  std::string save_optimizer = "all";  ///< all | last: which of them can be continued from
  int virtual_shards = 0;              ///< parts of an update whose gradients are added in their order; 0: one per rank
  std::string gradient_reduction = "ordered";  ///< ordered | fast: how the ranks' gradients become one
  std::string reward = "environment";          ///< environment | random | format: train/control_reward.h
  double max_infra_failures = 0.5;  ///< share of a step's or an evaluation's trajectories; beyond: the run ends
  bool keep_rollouts = true;        ///< write rollouts/step_N.jsonl

  void fields(FieldVisitor& visit);
};

/// Trajectories that one step samples, refills apart: the most that one of `ranks` rolls out. `Number`: an integer, or
/// base/saturating.h's for predictions.
template <class Number = std::int64_t>
Number step_trajectories(const TrainOptions& train, const RolloutSettings& rollout, int ranks = 1) {
  return (Number(train.groups_per_step) + ranks - 1) / ranks * rollout.options.group_size;
}

/// `critic.*`: of methods that need values.
struct CriticOptions {
  ScheduleOptions schedule{.learning_rate = 1e-5};
  OptimizerOptions optimizer{};
  std::int64_t head_start = 0;  ///< first steps, in which only the critic learns

  void fields(FieldVisitor& visit);
};

/// `memory.*`: of the prediction before a run starts (run/memory_budget.h).
struct MemoryOptions {
  std::string check = "refuse";      ///< refuse | warn | off: if the prediction exceeds the available memory
  std::int64_t limit_megabytes = 0;  ///< 0: what the machine or the control group has available

  void fields(FieldVisitor& visit);
};

/// `track.*`: a program that receives the run's progress (docs/trackers.md).
struct TrackOptions {
  std::vector<std::string> command{};  ///< empty: none
  int transcripts = 4;                 ///< of a training step
  double finish_seconds = 30;          ///< that the program may take at the end

  void fields(FieldVisitor& visit);
};

/// `eval.*`
struct EvaluationOptions {
  std::int64_t every = 0;  ///< training steps between evaluations; 0: before and after only
  bool before_training = true;
  int tasks = 200;
  int samples = 1;  ///< trajectories per task
  double temperature = 1;
  double top_p = 1;
  std::string breakdown{};  ///< key of the task's info by which success is also reported ("hops")

  void fields(FieldVisitor& visit);
};

}  // namespace carnot
