"""Carnot's methods as advantage estimators of verl 0.9, and AEPO's clip as a policy loss. Copy this file; see
docs/other_trainers.md.

    VERL_USE_EXTERNAL_MODULES=carnot_verl python3 -m verl.trainer.main_ppo algorithm.adv_estimator=carnot_aem ...
"""
import carnot_rl_core as carnot
import torch
from verl.trainer.ppo import core_algos, ray_trainer

METHODS = {  # by name of the estimator: the method, and its options
    "carnot_aem": ("grpo + aem", {}),
    "carnot_aepo": ("grpo + aepo", {}),
    "carnot_a2tgpo": ("a2tgpo", {}),
    "carnot_actfocus": ("grpo + actfocus", {"actfocus.signal": "surprisal"}),
}
batch_of_estimator = None  # verl hands estimators only a part of it


def compute_advantage(data, *args, _original=ray_trainer.compute_advantage, **kwargs):
    global batch_of_estimator
    batch_of_estimator = data
    return _original(data, *args, **kwargs)


ray_trainer.compute_advantage = compute_advantage


def signals_of(data):
    """Where verl has dropped the entropies, the surprisals, whose expectations they are, take their place."""
    tensors, lists = data.batch, data.non_tensor_batch
    found = {"logp_old": tensors["old_log_probs"], "entropy_old": tensors.get("entropys", -tensors["old_log_probs"]),
             "logp_ref": tensors.get("ref_log_prob", None), "actions": lists.get("actions"),
             "info_gains": lists.get("info_gains")}
    return {name: values.cpu().double().numpy() if torch.is_tensor(values) else values
            for name, values in found.items() if values is not None}


def register(name, method, options):
    @core_algos.register_adv_est(name)
    def estimate(token_level_rewards, response_mask, index, **_):
        credit = carnot.batch_credit(method, index, token_level_rewards.sum(dim=-1).tolist(),
                                     response_mask.bool().cpu().numpy(), options, **signals_of(batch_of_estimator))
        advantages = torch.stack([torch.from_numpy(row) for row in credit.weighted_advantage]).to(token_level_rewards)
        return advantages, advantages


for name, (method, options) in METHODS.items():
    register(name, method, options)


@core_algos.register_policy_loss("carnot_aepo")
def gradient_preserving_clip(old_log_prob, log_prob, advantages, response_mask, loss_agg_mode="token-mean", config=None,
                             rollout_is_weights=None):
    """AEPO's clip: above the range, the gradient of a ratio at its upper bound instead of none."""
    low, high = (config.clip_ratio if bound is None else bound
                 for bound in (config.clip_ratio_low, config.clip_ratio_high))
    ratio = (log_prob - old_log_prob).clamp(-20, 20).exp()
    above = ratio > 1 + high
    clipped = torch.where(above, (1 + high) * ratio / ratio.detach(), ratio.clamp(1 - low, 1 + high))
    losses = torch.maximum(-advantages * ratio, -advantages * clipped)
    losses = torch.where(advantages < 0, torch.minimum(losses, -advantages * config.get("clip_ratio_c", 3.0)), losses)
    if rollout_is_weights is not None:
        losses = losses * rollout_is_weights
    loss = core_algos.agg_loss(losses, response_mask, loss_agg_mode, **config.global_batch_info)
    preserved = (above & (advantages > 0))[response_mask.bool()].float().mean()
    return loss, {"actor/pg_clipfrac": preserved.item()}
