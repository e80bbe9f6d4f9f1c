#!/usr/bin/env python3
"""Records torch.optim.AdamW with torch.nn.utils.clip_grad_norm_ on random gradients, for tests/golden/adamw.json.

Run from the repository root with:  pip install torch==2.13.0 numpy
    python3 tools/golden/adamw.py

Matrices decay, vectors do not. All in float64; numbers are written in full.
"""

import json
import pathlib

import torch

SHAPES = {"matrix": [3, 4], "vector": [5], "scalar_like": [1]}
CASES = [
    dict(beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.0, max_grad_norm=1e9, rates=[1e-3] * 5),
    dict(beta1=0.9, beta2=0.95, epsilon=1e-6, weight_decay=0.1, max_grad_norm=1.0, rates=[1e-2, 2e-2, 0.0, 5e-3]),
    dict(beta1=0.5, beta2=0.7, epsilon=1e-3, weight_decay=0.5, max_grad_norm=3.0, rates=[0.1] * 6),
]


def numbers(tensors):
    return {name: tensor.detach().flatten().tolist() for name, tensor in tensors.items()}


def record(case, generator):
    weights = {name: torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
               for name, shape in SHAPES.items()}
    optimizer = torch.optim.AdamW(
        [{"params": [w for w in weights.values() if w.dim() >= 2], "weight_decay": case["weight_decay"]},
         {"params": [w for w in weights.values() if w.dim() < 2], "weight_decay": 0.0}],
        betas=(case["beta1"], case["beta2"]), eps=case["epsilon"])
    recorded = dict(case, shapes=SHAPES, start=numbers(weights), steps=[])
    for rate in case["rates"]:
        for weight in weights.values():
            weight.grad = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
        gradients = numbers({name: weight.grad for name, weight in weights.items()})
        norm = torch.nn.utils.clip_grad_norm_(weights.values(), case["max_grad_norm"])
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        recorded["steps"].append(dict(rate=rate, gradients=gradients, grad_norm=norm.item(), weights=numbers(weights)))
    return recorded


generator = torch.Generator().manual_seed(7)
cases = [record(case, generator) for case in CASES]
pathlib.Path("tests/golden/adamw.json").write_text(
    "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
