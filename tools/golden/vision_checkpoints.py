#!/usr/bin/env python3
"""Records checkpoints with a vision tower and what transformers computes with them for text, for tests/golden/vision/.

Run from the repository root, once with each version, which name tensors differently:
    pip install torch==2.13.0 transformers==5.23.0 numpy safetensors     (gemma3, mistral3, ministral3, smolvlm)
    pip install torch==2.13.0 transformers==4.57.6 numpy safetensors     (gemma3, mistral3)
    python3 tools/golden/vision_checkpoints.py

Per case one folder, NAME_VERSION: config.json and weights as save_pretrained writes them, bfloat16, and
expected.safetensors:
  tokens  int64, one sequence
  logits  [T, V], float64 throughout (see transformers_parity.py)
"""

import pathlib

import torch
import transformers
from safetensors.torch import save_file

from transformers_parity import double_throughout

ROOT = pathlib.Path("tests/golden/vision")
TEXT = dict(vocab_size=61, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=1, head_dim=8, bos_token_id=1, eos_token_id=2, pad_token_id=0,
            max_position_embeddings=64)
VISION = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4)
PIXTRAL = dict(VISION, model_type="pixtral", head_dim=4)
ROPE = dict(rope_type="default", rope_theta=10000.0)

CASES = {
    "gemma3": ("Gemma3", dict(
        text_config=dict(TEXT, model_type="gemma3_text", sliding_window=8, query_pre_attn_scalar=8,
                         layer_types=["sliding_attention", "full_attention"]),
        vision_config=dict(VISION, model_type="siglip_vision_model"), mm_tokens_per_image=4, image_token_index=60,
        boi_token_index=58, eoi_token_index=59)),
    "mistral3": ("Mistral3", dict(text_config=dict(TEXT, model_type="mistral", sliding_window=None),
                                  vision_config=PIXTRAL, image_token_index=60)),
    "ministral3": ("Mistral3", dict(
        text_config=dict(TEXT, model_type="ministral3", tie_word_embeddings=True, sliding_window=None,
                         rope_parameters=dict(ROPE, llama_4_scaling_beta=0.1, original_max_position_embeddings=8)),
        vision_config=PIXTRAL, image_token_index=60, tie_word_embeddings=True)),
    "smolvlm": ("SmolVLM", dict(text_config=dict(TEXT, model_type="llama"),
                                vision_config=dict(VISION, model_type="smolvlm_vision"), image_token_id=60,
                                scale_factor=1, pad_token_id=0)),
}


def record(name, family, options):
    model = getattr(transformers, family + "ForConditionalGeneration")(
        getattr(transformers, family + "Config")(**options, attn_implementation="eager"))
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) * 0.4)
    folder = ROOT / f"{name}_{transformers.__version__.split('.')[0]}"
    model.to(torch.bfloat16).save_pretrained(folder)
    language = model.double().eval().model
    language = getattr(language, "language_model", getattr(language, "text_model", None))
    if hasattr(language.embed_tokens, "embed_scale"):  # 4, whatever it is rounded to
        language.embed_tokens.embed_scale = language.embed_tokens.embed_scale.double()
    if hasattr(language, "rotary_emb_local"):  # 4: rounded with the weights
        language.rotary_emb_local.inv_freq = 10000.0 ** (-torch.arange(0, TEXT["head_dim"], 2).double() / TEXT["head_dim"])
    tokens = torch.randint(3, 57, (23,), generator=generator)
    holder = type("Holder", (), {})()  # double_throughout sets the angles of model.model
    holder.model, holder.config = language, language.config
    with torch.no_grad(), double_throughout(holder):
        logits = model.lm_head(language(input_ids=tokens[None]).last_hidden_state)[0]
    save_file({"tokens": tokens, "logits": logits.contiguous()}, folder / "expected.safetensors")
    print(folder, sum(file.stat().st_size for file in folder.iterdir()), "bytes", logits.std().item())


for case, (family_name, settings) in CASES.items():
    old = transformers.__version__.startswith("4.")
    if old and case in ("ministral3", "smolvlm"):
        continue
    record(case, family_name, settings)
