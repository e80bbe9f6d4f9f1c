"""Carnot's methods as credit of the traces of verifiers 0.4, which prime-rl trains on. Copy this file; see
docs/other_trainers.md.

    class Aem(Algorithm):  # of prime_rl.orchestrator.algo.base
        async def score_group(self, group):
            assign_credit(group, "grpo + aem")
"""
import carnot_rl_core as carnot
import numpy as np


def assign_credit(traces, method, options=None, action_tokens=None):
    """Sets `advantages` on every sampled node of one group of traces. A trace with an error is left without credit.

    `action_tokens(node)` says which of a node's sampled tokens are the action (ActFocus). `trace.info["info_gains"]`
    has a number or None for each sampled node (A2TGPO). Where nodes have no entropies, the surprisals of the sampled
    tokens, whose expectations they are, take their place.
    """
    traces = [trace for trace in traces if not trace.has_error]
    mask = [np.concatenate([node.mask for node in trace.nodes]).astype(bool) for trace in traces]
    columns = {"turns": [np.repeat(np.arange(len(trace.nodes)), [len(node.mask) for node in trace.nodes])
                         for trace in traces]}
    columns["logp_old"] = of_tokens(traces, lambda node: node.logprobs)
    measured = all(node.entropies is not None for trace in traces for node in trace.nodes if any(node.mask))
    columns["entropy_old"] = of_tokens(traces, lambda node: node.entropies) if measured else [
        -values for values in columns["logp_old"]]
    if action_tokens:
        columns["actions"] = [values == 1 for values in of_tokens(traces, action_tokens)]
    if all("info_gains" in trace.info for trace in traces):
        columns["info_gains"] = [trace.info["info_gains"] for trace in traces]
    credit = carnot.batch_credit(method, np.zeros(len(traces)), [trace.reward for trace in traces], mask, options,
                                 **columns)
    for trace, advantages in zip(traces, credit.weighted_advantage):
        ends = np.cumsum([len(node.mask) for node in trace.nodes])[:-1]
        for node, values in zip(trace.nodes, np.split(advantages, ends)):
            node.advantages = values[np.array(node.mask, bool)].tolist() if any(node.mask) else None


def of_tokens(traces, values_of):
    """A column for each trace: a node has values for its sampled tokens, the others get 0."""
    columns = []
    for trace in traces:
        parts = []
        for node in trace.nodes:
            part = np.zeros(len(node.mask))
            if any(node.mask):
                part[np.array(node.mask, bool)] = values_of(node)
            parts.append(part)
        columns.append(np.concatenate(parts))
    return columns
