"""A GRPOTrainer of TRL 1.16 whose credit is that of one of Carnot's methods. Copy this file; docs/other_trainers.md.

    trainer = CarnotTrainer(method="grpo + aem", model=..., reward_funcs=..., args=GRPOConfig(...), train_dataset=...)
"""
import carnot_rl_core as carnot
import numpy as np
import torch
from accelerate.utils import gather_object
from transformers import TrainerCallback
from trl import GRPOTrainer


class CarnotTrainer(GRPOTrainer):
    """`action_tokens(ids)` says which tokens of a completion are the action (ActFocus); `info_gains(inputs, batch)` has
    a list for each completion with a number or None for each of its turns (A2TGPO, IGPO)."""

    def __init__(self, *args, method, method_options=None, action_tokens=None, info_gains=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.method, self.method_options = method, method_options or {}
        self.action_tokens, self.info_gains = action_tokens, info_gains
        self.needs_reference = "actfocus" in method
        if self.needs_reference and self.ref_model is None:
            raise ValueError("beta: expected a number above 0, because actfocus reads the reference model")
        objective = carnot.objective(method, self.method_options)
        if objective["adaptive_entropy.enabled"]:
            self.entropy_coef, self._entropy_bonus_enabled = objective["entropy_coefficient"], True
            self.add_callback(AdaptiveEntropy(self, objective))

    def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list):
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)  # of all processes
        scores = (rewards * self.reward_weights.to(rewards.device)).nansum(dim=1)
        self.scores = torch.where(rewards.isnan().all(dim=1), torch.nan, scores).tolist()
        return rewards

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        columns = {"mask": (batch["completion_mask"] * batch.get("tool_mask", 1)).bool()}
        columns["entropy_old"], _ = self.measure(self.model, batch)
        if self.needs_reference:
            _, columns["energy_ref"] = self.measure(self.ref_model, batch)
        columns = {name: gather_object(list(values.cpu().numpy())) for name, values in columns.items()}
        if self.action_tokens:
            columns["actions"] = gather_object([self.action_tokens(ids) for ids in batch["completion_ids"].tolist()])
        if self.info_gains:
            columns["info_gains"] = gather_object(self.info_gains(inputs, batch))
        scored = ~np.isnan(self.scores)
        columns["mask"] = [mask & keep for mask, keep in zip(columns["mask"], scored)]
        groups = np.arange(len(scored)) // (self.num_generations if self.model.training else self.num_generations_eval)
        credit = carnot.batch_credit(self.method, groups, np.nan_to_num(self.scores), options=self.method_options,
                                     **columns)
        own = slice(self.accelerator.process_index * len(inputs), (self.accelerator.process_index + 1) * len(inputs))
        for name, rows in (("advantages", credit.weighted_advantage), ("clip_scale", credit.clip_scale)):
            batch[name] = torch.tensor(np.stack(rows[own]), dtype=torch.float32, device=self.accelerator.device)
        return batch

    @torch.no_grad()
    def measure(self, model, batch):
        """Entropy and energy at each token of the completions."""
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        attention = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        kept, parts = batch["completion_ids"].size(1), []
        for ids_, attention_ in zip(ids.split(self.args.per_device_train_batch_size),
                                    attention.split(self.args.per_device_train_batch_size)):
            logits = model(input_ids=ids_, attention_mask=attention_, logits_to_keep=kept + 1).logits[:, :-1].float()
            entropy = torch.distributions.Categorical(logits=logits / self.temperature).entropy()
            parts.append((entropy, -logits.logsumexp(dim=-1)))
        return tuple(torch.cat(values) for values in zip(*parts))

    def _compute_loss(self, model, inputs):
        low, high, scale = self.epsilon_low, self.epsilon_high, inputs["clip_scale"]
        if (scale != 1).any():
            self.epsilon_low, self.epsilon_high = low * scale, high * scale
        try:
            return super()._compute_loss(model, inputs)
        finally:
            self.epsilon_low, self.epsilon_high = low, high


class AdaptiveEntropy(TrainerCallback):
    """AEnt's coefficient of the entropy bonus. The entropy is TRL's, over the whole vocabulary."""

    def __init__(self, trainer, objective):
        self.trainer = trainer
        names = ("low", "high", "rate", "least", "most", "warmup")
        options = {name: objective[f"adaptive_entropy.{name}"] for name in names}
        self.coefficient = carnot.EntropyCoefficient(objective["entropy_coefficient"], **options)

    def on_step_end(self, args, state, control, **kwargs):
        recent = self.trainer._metrics["train"]["entropy"][-args.gradient_accumulation_steps:]
        self.coefficient.update(sum(recent) / len(recent))
        self.trainer.entropy_coef = self.coefficient.coefficient
