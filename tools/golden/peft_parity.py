#!/usr/bin/env python3
"""Records what PEFT computes with adapters on the tiny decoders of tests/golden/transformers, for tests/golden/peft/.

Run from the repository root with:
    pip install torch==2.13.0 transformers==4.57.6 peft==0.18.0 numpy safetensors     (lfm2_all, qwen3_5_all: transformers==5.23.0)
    python3 tools/golden/peft_parity.py CASE ...   # without names, all

Per case one folder: adapter_config.json and adapter_model.safetensors as save_pretrained writes them (float32), and
expected.safetensors, in float64 throughout (see transformers_parity.py):
  tokens             int64, one sequence
  hidden             [T, H] after the final norm
  loss               mean negative log-prob of each next token
  grad.NAME          its gradient, per matrix of an adapter, by the name in adapter_model.safetensors
"""

import json
import pathlib
import sys

import torch
from peft import LoraConfig, get_peft_model
from peft.utils import get_peft_model_state_dict
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from transformers_parity import SHAPE, double_throughout

CASES = {
    "qwen2_all": ("qwen2", dict(r=3, lora_alpha=5, target_modules="all-linear")),
    "qwen3_some": ("qwen3", dict(r=4, lora_alpha=4, target_modules=["q_proj", "v_proj", "down_proj"])),
    "olmoe_some": ("olmoe", dict(r=2, lora_alpha=3, target_modules=["q_proj", "gate_proj", "down_proj"])),
    "lfm2_all": ("lfm2", dict(r=2, lora_alpha=6, target_modules=["in_proj", "q_proj", "k_proj", "v_proj", "out_proj",
                                                                 "w1", "w2", "w3"])),
    "qwen3_5_all": ("qwen3_5", dict(r=2, lora_alpha=6, target_modules="all-linear")),
}


def record(base, options, folder):
    generator = torch.Generator().manual_seed(sum(map(ord, folder.name)))
    decoder = AutoModelForCausalLM.from_pretrained(f"tests/golden/transformers/{base}", attn_implementation="eager")
    model = get_peft_model(decoder, LoraConfig(**options, task_type="CAUSAL_LM"))
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.copy_(0.3 * torch.randn(weight.shape, generator=generator))
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["target_modules"].sort()  # a set, in a different order each time
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")

    model = model.double().eval()
    tokens = torch.randint(0, SHAPE["vocab_size"], (23,), generator=generator)
    with double_throughout(decoder):
        out = model(input_ids=tokens[None], output_hidden_states=True)
    loss = -out.logits[0, :-1].log_softmax(-1).gather(-1, tokens[1:, None]).mean()
    loss.backward()
    stored = get_peft_model_state_dict(model)
    gradients = {name.replace(".default.", "."): weight.grad for name, weight in model.named_parameters()
                 if weight.requires_grad}
    assert stored.keys() == gradients.keys()
    tensors = {"tokens": tokens, "hidden": out.hidden_states[-1][0], "loss": loss.reshape(1)}
    tensors |= {f"grad.{name}": gradient for name, gradient in gradients.items()}
    save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, folder / "expected.safetensors")
    print(folder, "loss", loss.item())


for name in sys.argv[1:] or CASES:
    record(*CASES[name], pathlib.Path("tests/golden/peft") / name)
