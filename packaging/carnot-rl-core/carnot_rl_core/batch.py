"""Credit of a batch as trainers on tensors hold it: an array per quantity, a row per trajectory, masks for tokens."""
from dataclasses import dataclass

import numpy

from carnot_rl_core import _core


@dataclass
class BatchCredit:
    """A list per quantity with one array per trajectory, as long as its mask. Neutral where a token was not sampled."""
    advantage: list[numpy.ndarray]
    """After the scale of advantages that the method's objective has (AEPO)."""
    weight: list[numpy.ndarray]
    """Factor of a token's loss and of its share of the denominator (ActFocus)."""
    clip_scale: list[numpy.ndarray]
    """Factor of the width of a token's clip range (A2TGPO)."""
    weighted_advantage: list[numpy.ndarray]
    """advantage times weight over the mean weight, for a loss that knows no weights and is a mean over the batch's
    sampled tokens. A clipped surrogate with it equals the one with weights."""
    dropped: list[bool]
    """The method's filter takes the trajectory out of the update; its advantages are 0."""


def batch_credit(method, groups, scores, mask, options=None, *, turns=None, actions=None, info_gains=None, **signals):
    """Credit that `method` gives to the sampled tokens of a batch; the same as that of credit().

    `groups`: a name or number for each trajectory, equal for those of one task. `scores`: a number for each, the reward
    of its last turn. `mask`: an array for each, true on sampled tokens; padding is false. These have its shape:
    `turns`, numbers of turns, if runs of sampled tokens are not the turns; `actions`, true on tokens of the action, not
    of the thinking (ActFocus); `signals`: entropy_old, logp_old, logp_ref, energy_ref and the others of
    docs/trajectory_format.md. `info_gains` has a list for each trajectory: a number or None for each of its turns.
    `options` are those of credit().

    A trajectory without sampled tokens is excluded and has no credit.
    """
    options = options or {}
    masks = [numpy.asarray(row, bool) for row in mask]
    sampled = [i for i, row in enumerate(masks) if row.any()]
    rows = [_row(i, str(groups[i]), scores[i], masks[i], turns, actions, info_gains, signals) for i in sampled]
    zeros, ones = ([fill(len(row)) for row in masks] for fill in (numpy.zeros, numpy.ones))
    result = BatchCredit(zeros, [row.copy() for row in zeros], ones, [], [True] * len(masks))
    for i, credit in zip(sampled, _core.credit(rows, method, options)):
        result.dropped[i] = credit.dropped
        if credit.dropped:
            continue
        for name in ("advantage", "weight", "clip_scale"):
            getattr(result, name)[i][masks[i]] = getattr(credit, name)[masks[i]]
    kept = [i for i, dropped in enumerate(result.dropped) if not dropped]
    _scale(result, masks, kept, _core.objective(method, options)["entropy_scale"], signals)
    total = sum(result.weight[i].sum() for i in kept)
    mean = total / sum(masks[i].sum() for i in kept) if total > 0 else 1.0
    result.weighted_advantage = [one * weight / mean for one, weight in zip(result.advantage, result.weight)]
    return result


def _row(i, group, score, mask, turns, actions, info_gains, signals):
    spans = _spans(mask, None if turns is None else numpy.asarray(turns[i]))
    if info_gains is not None:
        for span, gain in zip(spans, info_gains[i], strict=True):
            span["info_gain"] = gain
    spans[-1]["reward"] = float(score)
    row = {"uid": group, "traj_id": i, "score": float(score), "token_ids": numpy.zeros(len(mask), int),
           "loss_mask": mask, "turns": spans}
    if actions is not None:
        outside = numpy.where(numpy.arange(len(mask)) < mask.argmax(), "prompt", "observation")
        row["segment"] = numpy.where(mask, numpy.where(actions[i], "action", "think"), outside).tolist()
    for name, values in signals.items():
        row[name] = numpy.where(mask, numpy.asarray(values[i], float), numpy.nan)
    return row


def _spans(mask, turns):
    """A turn begins with each run of sampled tokens, and with each new number in `turns` among them."""
    before = numpy.concatenate([[False], mask[:-1]])
    begins = mask & ~before
    if turns is not None:
        begins |= mask & numpy.concatenate([[False], turns[1:] != turns[:-1]])
    edges = [0, *numpy.flatnonzero(begins)[1:].tolist(), len(mask)]
    return [{"start": start, "end": end} for start, end in zip(edges, edges[1:])]


def _scale(result, masks, kept, strength, signals):
    if strength == 0 or not kept:
        return
    if "entropy_old" not in signals:
        raise ValueError("entropy_old: this signal is missing; the method's objective.entropy_scale reads it")
    entropies = [numpy.asarray(signals["entropy_old"][i], float)[masks[i]] for i in kept]
    factors = _core.entropy_scale(numpy.concatenate(entropies), strength)
    for i, part in zip(kept, numpy.split(factors, numpy.cumsum([len(one) for one in entropies])[:-1])):
        result.advantage[i][masks[i]] *= part
