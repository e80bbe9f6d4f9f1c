#!/usr/bin/env python3
"""Records what Hugging Face transformers computes on tiny random decoders, for tests/golden/transformers/.

Run from the repository root with:  pip install torch==2.13.0 transformers==4.57.6 numpy safetensors
    python3 tools/golden/transformers_parity.py

Per family one folder: config.json and model.safetensors as save_pretrained writes them (float32 weights), and
expected.safetensors, computed with eager attention, one sequence at a time, in float64 throughout: the casts to
float32 inside norms, softmax and rotary embedding are redirected to float64, nothing else is changed.
  tokens, positions, offsets  int64, three ragged sequences packed one behind the other
  hidden                      [T, H] after the final norm
  rows, targets               rows that predict a next token, and that token
  logprob, entropy, logsumexp per row of `rows`, nats, temperature 1
  loss                        mean negative log-prob of the targets
  grad.NAME                   its gradient, per weight
"""

import contextlib
import pathlib

import torch
from safetensors.torch import save_file
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

LENGTHS = [7, 1, 19]
SHAPE = dict(vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-6, bos_token_id=1, eos_token_id=2,
             attn_implementation="eager", torch_dtype="float32")
MODELS = {
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SHAPE, rope_theta=10000.0, tie_word_embeddings=True)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SHAPE, head_dim=16, rope_theta=1000000.0,
                                                  tie_word_embeddings=False)),
}


def randomise(model, generator):
    """Weights large enough that attention and softmax are far from uniform; norms and biases away from 1 and 0."""
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        with torch.no_grad():
            weight.copy_(1 + 0.3 * noise if "norm" in name else 0.5 * noise if "bias" in name
                         else noise / weight.shape[-1] ** 0.5 * (3 if "embed" in name else 1.5))


@contextlib.contextmanager
def double_throughout(model):
    """transformers rounds norms, softmax and angles to float32 whatever the weights' type; here they stay float64."""
    rotary = model.model.rotary_emb
    head_dim = 2 * rotary.inv_freq.shape[0]
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim
    rotary.inv_freq = model.config.rope_theta ** -exponents
    float32, to_float = torch.float32, torch.Tensor.float
    torch.float32, torch.Tensor.float = torch.float64, torch.Tensor.double
    try:
        yield
    finally:
        torch.float32, torch.Tensor.float = float32, to_float


def record(family, folder):
    generator = torch.Generator().manual_seed(sum(map(ord, family)))
    model = MODELS[family]()
    randomise(model, generator)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder, safe_serialization=True)
    (folder / "generation_config.json").unlink(missing_ok=True)

    model = model.double().eval()
    columns = {name: [] for name in ("tokens", "positions", "hidden", "rows", "targets", "logprob", "entropy",
                                     "logsumexp")}
    begin = 0
    for length in LENGTHS:
        tokens = torch.randint(0, SHAPE["vocab_size"], (length,), generator=generator)
        with double_throughout(model):
            out = model(tokens[None], output_hidden_states=True)
        logits = out.logits[0, :-1]
        logprobs = logits.log_softmax(-1)
        columns["tokens"].append(tokens)
        columns["positions"].append(torch.arange(length))
        columns["hidden"].append(out.hidden_states[-1][0])
        columns["rows"].append(torch.arange(begin, begin + length - 1))
        columns["targets"].append(tokens[1:])
        columns["logprob"].append(logprobs.gather(-1, tokens[1:, None])[:, 0])
        columns["entropy"].append(-(logprobs.exp() * logprobs).sum(-1))
        columns["logsumexp"].append(logits.logsumexp(-1))
        begin += length
    packed = {name: torch.cat(parts) for name, parts in columns.items()}
    loss = -packed["logprob"].mean()
    loss.backward()
    packed["loss"] = loss.reshape(1)
    packed["offsets"] = torch.tensor([0] + LENGTHS).cumsum(0)
    for name, weight in model.named_parameters():
        packed["grad." + name] = weight.grad
    save_file({name: tensor.detach().contiguous() for name, tensor in packed.items()}, folder / "expected.safetensors")
    print(family, "loss", loss.item(), "mean entropy", packed["entropy"].mean().item())


for family in MODELS:
    record(family, pathlib.Path("tests/golden/transformers") / family)
