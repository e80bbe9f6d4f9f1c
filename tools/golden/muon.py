#!/usr/bin/env python3
"""Records torch.optim.Muon after torch.nn.utils.clip_grad_norm_ on random gradients, for tests/golden/muon.json.

Run from the repository root with:  pip install torch==2.13.0 numpy
    python3 tools/golden/muon.py

All in float64, including the Newton-Schulz steps, which torch rounds to bfloat16; numbers are written in full.
"""

import json
import pathlib
from unittest import mock

import torch

SHAPES = {"wide": [3, 5], "tall": [6, 2], "square": [4, 4]}
CASES = [
    dict(momentum=0.95, weight_decay=0.0, max_grad_norm=1e9, rates=[1e-2] * 3),
    dict(momentum=0.8, weight_decay=0.1, max_grad_norm=1.0, rates=[1e-2, 2e-2, 0.0, 5e-3]),
]


def numbers(tensors):
    return {name: tensor.detach().flatten().tolist() for name, tensor in tensors.items()}


def record(case, generator):
    weights = {name: torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
               for name, shape in SHAPES.items()}
    optimizer = torch.optim.Muon(weights.values(), momentum=case["momentum"], weight_decay=case["weight_decay"],
                                 adjust_lr_fn="match_rms_adamw")
    recorded = dict(case, shapes=SHAPES, start=numbers(weights), steps=[])
    for rate in case["rates"]:
        for weight in weights.values():
            weight.grad = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
        gradients = numbers({name: weight.grad for name, weight in weights.items()})
        norm = torch.nn.utils.clip_grad_norm_(weights.values(), case["max_grad_norm"])
        for group in optimizer.param_groups:
            group["lr"] = rate
        with mock.patch.object(torch.Tensor, "bfloat16", torch.Tensor.clone):
            optimizer.step()
        recorded["steps"].append(dict(rate=rate, gradients=gradients, grad_norm=norm.item(), weights=numbers(weights)))
    return recorded


generator = torch.Generator().manual_seed(11)
cases = [record(case, generator) for case in CASES]
pathlib.Path("tests/golden/muon.json").write_text(
    "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
