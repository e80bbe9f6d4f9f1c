#include "carnot/core/config/aliases.h"

namespace carnot {
namespace {

constexpr std::string_view kBatch =
    "set train.groups_per_step, the tasks of a step, each with rollout.group_size trajectories; "
    "train.micro_batch_tokens bounds "
    "memory and changes no result";
constexpr std::string_view kSharedEngine = "rollouts and training share one engine and its weights";
constexpr std::string_view kProcesses = "a launcher such as torchrun starts several processes (docs/distributed.md)";
constexpr std::string_view kWrittenAnyway = "console, metrics.jsonl, TensorBoard and rollouts are always written";
constexpr std::string_view kAdapters = "set lora.targets, a list of projections; all is the default";
constexpr std::string_view kBySteps = "evaluation and checkpoints come by steps: eval.every, train.save_every";

}  // namespace

std::span<const Alias> trl_aliases() {
  static const std::vector<Alias> kTable = {
      // Method and objective.
      {.theirs = "loss_type",
       .ours = {"objective.reduction"},
       .words = {{"grpo", "sequence_mean_token_mean"},
                 {"bnpo", "token_mean"},
                 {"dapo", "token_mean"},
                 {"dr_grpo", "token_sum_over_constant"}}},
      {.theirs = "scale_rewards",
       .ours = {"method.grpo.divide_by_std"},
       .words = {{"group", "true"}, {"none", "false"}}},
      {.theirs = "importance_sampling_level",
       .ours = {"objective.ratio"},
       .words = {{"token", "token"}, {"sequence", "sequence"}}},
      {.theirs = "beta", .ours = {"objective.kl_coefficient"}},
      {.theirs = "epsilon", .ours = {"objective.clip_low", "objective.clip_high"}, .rank = AliasRank::Default},
      {.theirs = "epsilon_high", .ours = {"objective.clip_high"}},
      {.theirs = "delta", .ours = {"objective.dual_clip"}},
      {.theirs = "entropy_coef", .ours = {"objective.entropy_coefficient"}},
      {.theirs = "use_adaptive_entropy",
       .words = {{"false", ""}},
       .advice = "add the method aent: method: grpo + aent"},
      {.theirs = "vllm_importance_sampling_cap", .ours = {"objective.importance_cap"}},
      {.theirs = "vllm_importance_sampling_*", .note = kSharedEngine},
      {.theirs = "top_entropy_quantile",
       .words = {{"1.0", ""}, {"1", ""}},
       .advice = "aem, aepo and actfocus are the methods here that weigh tokens by uncertainty"},
      {.theirs = "mask_truncated_completions",
       .words = {{"false", ""}},
       .advice = "method: dapo has a penalty on overlong answers instead"},
      {.theirs = "sync_ref_model", .words = {{"false", ""}}, .advice = "the reference is the policy before training"},
      {.theirs = "reward_funcs", .ours = {"env.reward"}, .environment = "dataset"},
      {.theirs = "reward_weights", .ours = {"env.reward_weights"}, .environment = "dataset"},
      {.theirs = "dataset_name", .advice = "set env: dataset and env.train_file (docs/datasets.md)"},

      // Rollouts.
      {.theirs = "num_generations", .ours = {"rollout.group_size"}},
      {.theirs = "max_completion_length", .ours = {"rollout.max_response_tokens"}},
      {.theirs = "temperature", .ours = {"rollout.temperature"}},
      {.theirs = "top_p", .ours = {"rollout.top_p"}},
      {.theirs = "top_k", .ours = {"rollout.top_k"}, .words = {{"-1", "0"}}},
      {.theirs = "min_p", .words = {{"0", ""}, {"0.0", ""}}, .advice = "set rollout.top_p"},
      {.theirs = "repetition_penalty",
       .words = {{"1.0", ""}, {"1", ""}},
       .advice = "tokens are drawn from the policy's own distribution"},
      {.theirs = "max_tool_calling_iterations", .ours = {"rollout.max_turns"}},
      {.theirs = "max_prompt_length", .note = "no prompt is cut: rollout.max_context_tokens bounds a trajectory"},
      {.theirs = "use_vllm", .note = kSharedEngine},
      {.theirs = "vllm_*", .note = kSharedEngine},
      {.theirs = "cache_implementation", .note = kSharedEngine},
      {.theirs = "use_transformers_*", .note = kSharedEngine},

      // Training.
      {.theirs = "model_name_or_path", .ours = {"model.path"}},
      {.theirs = "learning_rate", .ours = {"train.learning_rate"}},
      {.theirs = "warmup_steps", .ours = {"train.warmup_steps"}},
      {.theirs = "warmup_ratio", .words = {{"0", ""}, {"0.0", ""}}, .advice = "set train.warmup_steps"},
      {.theirs = "lr_scheduler_type", .ours = {"train.decay"}, .words = {{"constant_with_warmup", "constant"}}},
      {.theirs = "weight_decay", .ours = {"train.weight_decay"}},
      {.theirs = "adam_beta1", .ours = {"train.beta1"}},
      {.theirs = "adam_beta2", .ours = {"train.beta2"}},
      {.theirs = "adam_epsilon", .ours = {"train.epsilon"}},
      {.theirs = "optim",
       .ours = {"train.optimizer"},
       .words = {{"adamw_torch", "adamw"}, {"adamw_torch_fused", "adamw"}}},
      {.theirs = "max_grad_norm", .ours = {"train.max_grad_norm"}},
      {.theirs = "num_iterations", .ours = {"train.epochs"}},
      {.theirs = "gradient_checkpointing", .ours = {"train.activation_checkpointing"}},
      {.theirs = "bf16", .ours = {"dtype"}, .words = {{"true", "bfloat16"}, {"false", "float32"}}},
      {.theirs = "fp16", .words = {{"false", ""}}, .advice = "set dtype: bfloat16"},
      {.theirs = "per_device_train_batch_size", .advice = kBatch},
      {.theirs = "gradient_accumulation_steps", .words = {{"1", ""}}, .advice = kBatch},
      {.theirs = "generation_batch_size", .advice = kBatch},
      {.theirs = "steps_per_generation", .ours = {"train.mini_batches"}},
      {.theirs = "lora_r", .ours = {"lora.rank"}},
      {.theirs = "lora_alpha", .ours = {"lora.alpha"}},
      {.theirs = "lora_target_modules", .words = {{"all-linear", ""}}, .advice = kAdapters},
      {.theirs = "use_peft", .words = {{"false", ""}}, .advice = "set lora.rank"},
      {.theirs = "disable_dropout", .note = "models have no dropout"},

      // Run control.
      {.theirs = "max_steps", .ours = {"train.steps"}, .words = {{"-1", ""}}},
      {.theirs = "num_train_epochs", .ours = {"train.task_epochs"}},
      {.theirs = "output_dir", .ours = {"run_folder"}},
      {.theirs = "save_steps", .ours = {"train.save_every"}},
      {.theirs = "save_total_limit", .ours = {"train.max_checkpoints"}},
      {.theirs = "resume_from_checkpoint", .ours = {"resume"}, .words = {{"true", "auto"}, {"false", "never"}}},
      {.theirs = "eval_steps", .ours = {"eval.every"}},
      {.theirs = "eval_on_start", .ours = {"eval.before_training"}},
      {.theirs = "num_generations_eval", .ours = {"eval.samples"}},
      {.theirs = "eval_strategy", .note = kBySteps},
      {.theirs = "save_strategy", .note = kBySteps},
      {.theirs = "per_device_eval_batch_size", .note = "rollout.max_batch_tokens bounds a forward pass"},
      {.theirs = "logging_*", .note = kWrittenAnyway},
      {.theirs = "log_*", .note = kWrittenAnyway},
      {.theirs = "num_completions_to_print", .note = kWrittenAnyway},
      {.theirs = "report_to", .note = "track.command adds W&B, MLflow or trackio (docs/trackers.md)"},
      {.theirs = "run_name", .note = "run_folder names a run"},
      {.theirs = "push_to_hub", .words = {{"false", ""}}, .advice = "`carnot export` writes a folder to upload"},
      {.theirs = "shuffle_dataset",
       .words = {{"true", ""}},
       .note = "every epoch has an order that follows from the seed"},
      {.theirs = "remove_unused_columns", .note = "a reward sees every column"},
      {.theirs = "data_seed", .note = "`seed` is of every random decision of the run"},
      {.theirs = "trust_remote_code", .note = "no code is loaded with a model"},
      {.theirs = "attn_implementation", .note = kSharedEngine},
      {.theirs = "dataloader_*", .note = "rows are read before the run begins"},
      {.theirs = "ddp_*", .note = kProcesses},
      {.theirs = "deepspeed", .note = kProcesses},
      {.theirs = "fsdp*", .note = kProcesses},
      {.theirs = "torch_compile*", .note = "nothing is compiled at run time"},
      {.theirs = "use_liger_kernel", .note = "logits are computed in strips and never stored"},
  };
  return kTable;
}

}  // namespace carnot
