#!/usr/bin/env python3
"""Records Qwen3.5's gated delta rule and the gated norm behind it, as transformers computes them token by token
(torch_recurrent_gated_delta_rule), for tests/recorded/gated_delta/layers.jsonl.xz.

Run from the repository root with:  pip install torch==2.13.0 transformers==5.10.2 numpy
    python3 tools/golden/gated_delta.py

All in float64: the casts to float32 are redirected, nothing else is changed. Numbers are written with nine digits.
A line is a layer on one sequence. The outputs of its convolution and of the projections a, b and z are random.
  key_heads, value_heads, key_dim, value_dim, length
  qkv                       [length][2 key_heads key_dim + value_heads value_dim]
  a, b                      [length][value_heads]
  log_rate, step_bias       [value_heads], A_log and dt_bias
  out                       [length][value_heads][value_dim]
  state                     the last one, [value_heads][key_dim][value_dim]
  dout                      a gradient of out
  dqkv, da, db, dlog_rate, dstep_bias
  z, norm                   the gate, as out; the norm's weight, [value_dim]
  normed                    norm(out) gated by z
"""

import json
import lzma
import pathlib

import torch
from transformers.models.qwen3_5 import modeling_qwen3_5 as qwen
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig

torch.float32, torch.float, torch.Tensor.float = torch.float64, torch.float64, torch.Tensor.double
torch.set_default_dtype(torch.float64)

#        key_heads, value_heads, key_dim, value_dim, length
CASES = [(1, 1, 16, 32, 20), (1, 2, 8, 6, 70), (2, 4, 5, 3, 30)]


def record(case, generator):
    key_heads, value_heads, key_dim, value_dim, length = case
    normal = lambda *shape: torch.randn(*shape, generator=generator)
    layer = qwen.Qwen3_5GatedDeltaNet(
        Qwen3_5TextConfig(hidden_size=8, linear_key_head_dim=key_dim, linear_value_head_dim=value_dim,
                          linear_num_key_heads=key_heads, linear_num_value_heads=value_heads, rms_norm_eps=1e-6), 0)
    with torch.no_grad():
        layer.dt_bias.copy_(normal(value_heads))
        layer.A_log.copy_(normal(value_heads) / 2 - 1)
        layer.norm.weight.copy_(1 + normal(value_dim) / 4)
    # Written before they are read, so that what is computed with is what is stored.
    rounded = lambda tensor: torch.tensor([float(f"{x:.9g}") for x in tensor.flatten().tolist()]).view(tensor.shape)
    for parameter in layer.parameters():
        parameter.data = rounded(parameter.data)
    qkv = rounded(normal(length, layer.conv_dim)).requires_grad_()
    a, b = (rounded(normal(length, value_heads)).requires_grad_() for _ in "ab")
    z, dout = rounded(normal(length, layer.value_dim)), rounded(normal(length, value_heads, value_dim))
    found = {}

    def rule(*inputs, **settings):
        settings.pop("cu_seqlens")
        found["out"], found["state"] = qwen.torch_recurrent_gated_delta_rule(
            *inputs, **{**settings, "output_final_state": True})
        return found["out"], found["state"]

    layer.causal_conv1d_fn = lambda **_: qkv.T[None]
    layer.chunk_gated_delta_rule = rule
    for name, tensor in {"in_proj_a": a, "in_proj_b": b, "in_proj_z": z}.items():
        getattr(layer, name).register_forward_hook(lambda *_, tensor=tensor: tensor[None])
    layer.norm.register_forward_hook(lambda module, inputs, output: found.update(normed=output))
    layer(normal(1, length, 8))

    inputs = {"qkv": qkv, "a": a, "b": b, "log_rate": layer.A_log, "step_bias": layer.dt_bias}
    gradients = torch.autograd.grad((found["out"][0] * dout).sum(), list(inputs.values()))
    tensors = {**inputs, **found, "dout": dout, "z": z, "norm": layer.norm.weight,
               **{"d" + name: gradient for name, gradient in zip(inputs, gradients)}}
    return dict(zip(("key_heads", "value_heads", "key_dim", "value_dim", "length"), case),
                **{name: [float(f"{x:.9g}") for x in tensor.detach().flatten().tolist()]
                   for name, tensor in tensors.items()})


generator = torch.Generator().manual_seed(13)
lines = "".join(json.dumps(record(case, generator)) + "\n" for case in CASES)
pathlib.Path("tests/recorded/gated_delta/layers.jsonl.xz").write_bytes(lzma.compress(lines.encode(), preset=9))
