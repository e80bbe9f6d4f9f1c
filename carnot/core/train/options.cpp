#include "carnot/core/train/options.h"

#include "carnot/core/base/thread_pool.h"
#include "carnot/core/train/control_reward.h"

namespace carnot {

void RunOptions::fields(FieldVisitor& visit) {
  visit.field("seed", seed, "of every random decision of the run", at_least(0));
  visit.field("threads", threads, "of the kernels; 0: one per processor", between(0, kMaxThreads));
  visit.field("device", device, "where tensors live", one_of({"cpu", "cuda"}));
  visit.field("dtype", dtype,
              "of weights and activations; auto: the one that the model's weights are stored in (of float16: float32), "
              "float32 for random weights",
              one_of({"auto", "float32", "float64", "bfloat16"}));
  visit.field("run_folder", run_folder, "folder that the run writes into; made if need be");
  visit.field("resume", resume,
              "never, auto (from the run folder's latest checkpoint if there is one), or a checkpoint folder");
  visit.field("resume_changes", resume_changes,
              "whether a run may resume with other settings than it was made with (its config.yaml); those that say "
              "how long or how fast it runs may always change",
              one_of({"refuse", "allow"}));
}

void ModelOptions::fields(FieldVisitor& visit) {
  visit.field(
      "path", path,
      "Hugging Face folder with config.json, safetensors and tokenizer.json, or the id of a model that is in the "
      "hub's cache (Qwen/Qwen2.5-0.5B-Instruct); empty: random weights");
  visit.field("adapter", adapter,
              "PEFT folder whose adapters are applied to the model and trained further; its rank, alpha and targets "
              "are lora.*");
  visit.field("init_std", init_std, "standard deviation of random weights", above(0));
  shape.fields(visit);
}

void TokenizerOptions::fields(FieldVisitor& visit) {
  visit.field("path", path,
              "folder or tokenizer.json; empty: the model's, or one trained from the environment's texts");
  visit.field("vocab_size", vocab_size, "of a trained tokenizer; 0: bytes, tags and protected words alone",
              at_least(0));
  visit.field(
      "chat", chat,
      "chat family that renders messages; template: the template in the tokenizer's folder, template_think and "
      "template_no_think with a choice; auto: the family with that template, else template; chatml without one");
  visit.field("control_tokens_in_messages", control_tokens_in_messages,
              "control tokens (<|im_end|>) in what the environment says are tokens; otherwise they are spelled out");
}

void SftOptions::fields(FieldVisitor& visit) {
  visit.field("steps", steps, "optimizer steps of SFT on demonstrations; 0: none", count_from(0));
  visit.field("source", source,
              "file of demonstrations, or a list of files: rows of messages, of prompt and completion, or of "
              "trajectories, of which those that succeeded are taken; empty: the environment's script demonstrates");
  visit.field("held_out_share", held_out_share, "share of those rows that is held out, drawn by the seed",
              Limits{.low = 0, .high = 1, .open_high = true});
  visit.field("batch_tokens", batch_tokens, "tokens of one step's demonstrations", at_least(1));
  visit.field("context_weight", context_weight,
              "loss weight of tokens that the demonstrator did not say; with sft.source 0 unless it is set",
              between(0, 1));
  visit.field("log_every", log_every, "steps between lines of metrics", count_from(1));
  visit.field("eval_every", eval_every, "steps between measurements of the held-out loss; 0: at the end only",
              count_from(0));
  schedule.fields(visit);
  optimizer.fields(visit);
}

void RolloutSettings::fields(FieldVisitor& visit) {
  options.fields(visit);
  engine.fields(visit);
  visit.field("cache_tokens", cache_tokens,
              "positions that the KV cache holds; 0: enough for all trajectories of a step", at_least(0));
  visit.field(
      "old_log_probs", old_log_probs,
      "where the old policy's log-probabilities come from; auto: the rollout where a pass would give the same bits, "
      "else the pass",
      one_of({"auto", "recompute", "rollout"}));
  visit.field("extra_signals", extra_signals,
              "signals to measure and write though the method does without them, for analyses",
              one_of({"reference", "info_gain"}));
  visit.field("answer_lead", answer_lead,
              "text after which information gain measures the answer's likelihood; empty: as the environment's "
              "demonstrations have it");
  visit.field("log_prob_tokens", log_prob_tokens, "tokens of one log-prob pass", at_least(1));
  workers.fields(visit);
}

void WorkerOptions::fields(FieldVisitor& visit) {
  visit.field("workers", address,
              "NATS server where workers (`carnot worker`) get the rollouts of training steps: nats://HOST:4222, or "
              "nats://HOST:4222/NAME where several trainers share it; empty: this process rolls out");
  visit.field("workers_listen", listen,
              "address that weights are served and results taken on, over HTTP; other than loopback ones need "
              "rollout.workers_key_env");
  visit.field("workers_port", port, "of that server; 0: any that is free", between(0, 65535));
  visit.field("workers_url", url,
              "address under which workers reach that server (http://trainer:8400); empty: rollout.workers_listen and "
              "the port");
  visit.field("workers_key_env", key_variable,
              "environment variable with the key that workers need for that server; empty: none");
  visit.field(
      "workers_credentials", credentials,
      "file with this process's credentials for the NATS server, as nsc writes them; empty: CARNOT_NATS_USER and "
      "CARNOT_NATS_PASSWORD, or CARNOT_NATS_TOKEN, where the environment has them");
  visit.field("workers_authority", authority,
              "PEM file of the authority that signed the NATS server's certificate (tls://); empty: the system's");
  visit.field("workers_certificate", certificate,
              "PEM file of this process's certificate: the HTTP server then speaks TLS, and a NATS server with TLS is "
              "shown it; empty: none");
  visit.field("workers_private_key", private_key, "PEM file of that certificate's key");
  visit.field("workers_task_groups", task_groups, "groups that a worker gets at a time, and computes in one batch",
              at_least(1));
  visit.field("workers_lease_seconds", lease_seconds,
              "time after which a task whose worker has died or hangs goes to another one", between(2, 86400));
  visit.field(
      "workers_uploads", uploads,
      "workers that get weights from the trainer at a time; the others wait, or get them from workers that have "
      "them (`carnot worker --serve`); 0: any number",
      at_least(0));
  visit.field("max_staleness", max_staleness,
              "updates by which the weights that sampled may be behind those that a step updates: workers roll out "
              "later steps meanwhile; 0: synchronous; above 0 only with rollout.workers",
              count_from(0));
  visit.field("in_flight_updates", in_flight_updates,
              "workers take new weights in the middle of a task and compute again what they have cached; off: before "
              "their next task; only with rollout.max_staleness");
  visit.field(
      "other_kernels", other_kernels,
      "workers whose processors compute with another kernel set: refuse ends them with a message; recompute takes "
      "what they sample and computes its log-probabilities again, and the run is no longer equal in every bit to "
      "that without workers",
      one_of({"refuse", "recompute"}));
}

void TrainOptions::fields(FieldVisitor& visit) {
  visit.field("steps", steps, "training steps: rollouts, then updates", count_from(0));
  visit.field("task_epochs", task_epochs,
              "passes over the training tasks of a data set, instead of train.steps: tasks x epochs / "
              "train.groups_per_step steps, "
              "rounded up; 0: train.steps counts",
              count_from(0));
  visit.field("max_sampled_tokens", max_sampled_tokens,
              "training ends with the step in which the sum of sampled tokens reaches this, before train.steps or with "
              "them; 0: no limit",
              count_from(0));
  visit.field("groups_per_step", groups_per_step, "groups of one step: a task each", at_least(1));
  visit.field("epochs", epochs, "passes over a step's trajectories", at_least(1));
  visit.field("mini_batches", mini_batches, "optimizer steps of one pass", at_least(1));
  visit.field("micro_batch_tokens", micro_batch_tokens, "tokens of one forward and backward pass", at_least(1));
  visit.field("shared_prefixes", shared_prefixes,
              "what trajectories and demonstrations begin with alike, as prompts and shared turns; once: computed for "
              "all in a micro-batch; repeated: for each of them, with gradients that differ in rounding",
              one_of({"once", "repeated"}));
  visit.field("activation_checkpointing", activation_checkpointing,
              "layers keep their input alone and run again in the backward pass: less memory, a third more time, the "
              "same bits");
  visit.field(
      "router_aux_coefficient", router_aux_coefficient,
      "weight of the auxiliary loss that keeps experts evenly used, in SFT too; published checkpoints name 0.001 "
      "to 0.01 (router_aux_loss_coef); 0: none",
      at_least(0));
  visit.field(
      "virtual_shards", virtual_shards,
      "parts of an update whose gradients are added in their order: results are the same on any number of ranks "
      "that divides it; 0: as in the run that is resumed, else one for each rank",
      between(0, 1 << 20));
  visit.field("gradient_reduction", gradient_reduction,
              "how the gradients of several ranks become one; ordered: the same bits on any number of ranks; fast: by "
              "one all-reduce, bits depend on the number of ranks",
              one_of({"ordered", "fast"}));
  visit.field("save_every", save_every, "training steps between checkpoints; 0: by time and at the end only",
              count_from(0));
  visit.field("save_minutes", save_minutes,
              "time since the last checkpoint after which the next step, of SFT too, ends with one; 0: never",
              at_least(0));
  visit.field("max_checkpoints", max_checkpoints, "checkpoints to keep; 0: all", count_from(0));
  visit.field("save_optimizer", save_optimizer,
              "checkpoints that keep the optimizer, two thirds of their size; last: a run continues from the latest "
              "alone",
              one_of({"all", "last"}));
  visit.field("reward", reward,
              "environment: what it pays; controls that know nothing of the task: random (0 or 1), or format (1 where "
              "the episode ended with a valid action)",
              one_of(kRewardWords));
  visit.field("max_infra_failures", max_infra_failures,
              "share of a step's or an evaluation's trajectories that may be lost to infrastructure failures; beyond, "
              "the run ends",
              between(0, 1));
  visit.field("keep_rollouts", keep_rollouts, "write every trajectory to rollouts/step_N.jsonl");
  schedule.fields(visit);
  optimizer.fields(visit);
}

void CriticOptions::fields(FieldVisitor& visit) {
  visit.field("head_start", head_start, "first steps, in which only the critic learns", count_from(0));
  schedule.fields(visit);
  optimizer.fields(visit);
}

void MemoryOptions::fields(FieldVisitor& visit) {
  visit.field("check", check, "what happens to a run that is predicted to take more memory than there is",
              one_of({"refuse", "warn", "off"}));
  visit.field("limit_megabytes", limit_megabytes,
              "memory that the run may take; 0: what the machine or the control group has available", count_from(0));
}

void TrackOptions::fields(FieldVisitor& visit) {
  visit.field("command", command,
              "program and its arguments that gets the run's metrics and transcripts as JSON lines "
              "([python3, python/wandb_tracker.py]); empty: none");
  visit.field("transcripts", transcripts, "trajectories of a training step that it gets", at_least(0));
  visit.field("finish_seconds", finish_seconds, "time that it may take at the end of the run; then it is killed",
              between(0, 86400));
}

void EvaluationOptions::fields(FieldVisitor& visit) {
  visit.field("every", every, "training steps between evaluations; 0: before and after only", count_from(0));
  visit.field("before_training", before_training, "evaluate before the first training step");
  visit.field("tasks", tasks, "validation tasks; 0: no evaluation, after carnot sft alone", at_least(0));
  visit.field("samples", samples, "trajectories per task", at_least(1));
  visit.field("temperature", temperature, "of evaluation; 0: greedy", at_least(0));
  visit.field("top_p", top_p, "of evaluation", between(0, 1));
  visit.field("breakdown", breakdown,
              "what the task says about itself by which success is also reported, such as hops");
}

}  // namespace carnot
