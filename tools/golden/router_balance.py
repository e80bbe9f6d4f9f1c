#!/usr/bin/env python3
"""Records the auxiliary loss of routers as transformers computes it, for tests/recorded/router_balance.json.

Run from the repository root:
    pip install torch==2.13.0 transformers==5.23.0
    python3 tools/golden/router_balance.py

Each case has the logits of two layers of experts, the loss over both, and its gradient by the logits.
"""
import json
import pathlib

import torch
from transformers.models.qwen3_moe.modeling_qwen3_moe import load_balancing_loss_func

CASES = [(5, 2, 40), (17, 4, 9), (3, 3, 4), (8, 1, 20)]  # experts, of a row, rows


def record(experts, top_k, rows):
    logits = [(1.5 * torch.randn(rows, experts, dtype=torch.float64)).requires_grad_() for _ in range(2)]
    loss = load_balancing_loss_func(tuple(logits), experts, top_k)
    loss.backward()
    return {"experts": experts, "top_k": top_k, "loss": loss.item(),
            "logits": [one.tolist() for one in logits], "gradients": [one.grad.tolist() for one in logits]}


def main():
    torch.manual_seed(3)
    lines = ",\n".join(json.dumps(record(*case)) for case in CASES)
    pathlib.Path("tests/recorded/router_balance.json").write_text("[" + lines + "]\n")


if __name__ == "__main__":
    main()
