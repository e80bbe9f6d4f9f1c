#include "carnot/config/aliases.h"

namespace carnot {

std::span<const Alias> verl_aliases() {
  static const std::vector<Alias> kTable = {
      // Method and objective.
      {"algorithm.adv_estimator", {"method.name"}, {{"gae", "ppo"}, {"reinforce_plus_plus", "reinforce++"}}},
      {"actor_rollout_ref.actor.clip_ratio", {"objective.clip_low", "objective.clip_high"}},
      {"actor_rollout_ref.actor.clip_ratio_low", {"objective.clip_low"}},
      {"actor_rollout_ref.actor.clip_ratio_high", {"objective.clip_high"}},
      {"actor_rollout_ref.actor.clip_ratio_c", {"objective.dual_clip"}},
      {"actor_rollout_ref.actor.loss_agg_mode",
       {"objective.reduction"},
       {{"token-mean", "token_mean"},
        {"seq-mean-token-sum", "sequence_mean_token_sum"},
        {"seq-mean-token-mean", "sequence_mean_token_mean"},
        {"seq-mean-token-sum-norm", "token_sum_over_constant"}}},
      {"actor_rollout_ref.actor.entropy_coeff", {"objective.entropy_coefficient"}},
      {"actor_rollout_ref.actor.kl_loss_coef", {"objective.kl_coefficient"}},
      {"actor_rollout_ref.actor.kl_loss_type",
       {"objective.kl_estimator"},
       {{"kl", "k1"}, {"abs", "absolute"}, {"mse", "k2"}, {"low_var_kl", "k3"}}},
      {"algorithm.kl_ctrl.kl_coef", {"objective.kl_in_reward"}},
      {"algorithm.rollout_correction.rollout_is_threshold", {"objective.importance_cap"}},

      // Rollouts.
      {"actor_rollout_ref.rollout.n", {"rollout.group_size"}},
      {"actor_rollout_ref.rollout.temperature", {"rollout.temperature"}},
      {"actor_rollout_ref.rollout.top_k", {"rollout.top_k"}, {{"-1", "0"}}},
      {"actor_rollout_ref.rollout.top_p", {"rollout.top_p"}},
      {"actor_rollout_ref.rollout.multi_turn.max_assistant_turns", {"env.max_turns"}},

      // Training.
      {"actor_rollout_ref.model.path", {"model.path"}},
      {"actor_rollout_ref.model.enable_gradient_checkpointing", {"train.activation_checkpointing"}},
      {"actor_rollout_ref.model.lora_rank", {"lora.rank"}},
      {"actor_rollout_ref.model.lora_alpha", {"lora.alpha"}},
      {"actor_rollout_ref.actor.optim.lr", {"train.learning_rate"}},
      {"actor_rollout_ref.actor.grad_clip", {"train.max_grad_norm"}},
      {"actor_rollout_ref.actor.ppo_epochs", {"train.epochs"}},
      {"data.train_batch_size", {"train.groups"}},
      {"data.seed", {"seed"}},
      {"data.train_files", {"env.train_file"}},
      {"data.val_files", {"env.test_file"}},

      // Run control.
      {"trainer.total_training_steps", {"train.steps"}},
      {"trainer.default_local_dir", {"run_folder"}},
      {"trainer.save_freq", {"train.save_every"}},
      {"trainer.test_freq", {"eval.every"}},
      {"actor_rollout_ref.rollout.val_kwargs.n", {"eval.samples"}},
      {"actor_rollout_ref.rollout.val_kwargs.temperature", {"eval.temperature"}},
      {"actor_rollout_ref.rollout.val_kwargs.top_p", {"eval.top_p"}},
      {"trainer.val_before_train", {"eval.before_training"}},
      {"trainer.resume_mode", {"resume"}, {{"disable", "never"}}},
      {"trainer.max_actor_ckpt_to_keep", {"train.max_checkpoints"}},

      // Without a counterpart.
      {"actor_rollout_ref.actor.use_kl_loss", {}, {}, "set objective.kl_coefficient; 0 turns it off"},
      {"algorithm.use_kl_in_reward", {}, {}, "set objective.kl_in_reward; 0 turns it off"},
      {"algorithm.filter_groups.enable", {}, {}, "set filter.name: drop_zero_variance"},
      {"algorithm.gamma", {}, {}, "the discount is an option of the method"},
      {"algorithm.lam", {}, {}, "lambda is an option of the method"},
      {"actor_rollout_ref.model.target_modules", {}, {}, "set lora.targets, a list of projections; all is the default"},
      {"trainer.total_epochs", {}, {}, "tasks are made without end: set train.steps"},
      {"trainer.logger", {}, {}, "console, metrics.jsonl and TensorBoard are always written"},
      {"actor_rollout_ref.rollout.name", {}, {}, "there is one engine; leave the key out"},
  };
  return kTable;
}

}  // namespace carnot
