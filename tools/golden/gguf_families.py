#!/usr/bin/env python3
"""Records small random models of the families beyond Llama and Qwen as GGUF files, for tests/recorded/gguf/; two also
for tests/fuzz.

Run from the repository root with what gguf_files.py needs:
    python3 tools/golden/gguf_families.py

NAME.gguf         as llama.cpp's converter writes it: keys and names of tensors are those of the Python package gguf.
families.json     for each file what expected.json has (gguf_files.py).
"""

import hashlib
import json
import math
import shutil

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf_files import CORPUS, ROOT, Model, add_byte_level, finish, ids_of, permuted, tokenizer_file

LLAMA3_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
                r"\s*[\r\n]+|\s+(?!\S)|\s+")
UPPER, LOWER, ENDING = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O_SPLIT = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{ENDING}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{ENDING}|"
               r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN35_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
                r"\s*[\r\n]+|\s+(?!\S)|\s+")
FAMILIES = {  # the architecture, and how its files differ from Llama's; values are those of config.json
    "smollm3": dict(architecture="smollm3", permuted=True, num_hidden_layers=4, rope_theta=5000000.0,
                    no_rope_layers=[1, 1, 1, 0]),
    "gemma3": dict(architecture="gemma3", model_type="gemma3_text", norms="both", head_norms=True, added=1,
                   num_hidden_layers=7, sliding_window=64, rope_theta=1000000.0, rope_local_base_freq=10000.0,
                   query_pre_attn_scalar=8, hidden_activation="gelu_pytorch_tanh",
                   rope_scaling=dict(rope_type="linear", factor=8.0)),
    "granite": dict(architecture="granite", permuted=True, attention_multiplier=0.0625, embedding_multiplier=12.0,
                    residual_multiplier=0.22, logits_scaling=8.0),
    "qwen3moe": dict(architecture="qwen3moe", model_type="qwen3_moe", head_norms=True, num_experts=3,
                     num_experts_per_tok=2, moe_intermediate_size=32, norm_topk_prob=True),
    "olmoe": dict(architecture="olmoe", whole_norms=True, num_key_value_heads=4, num_experts=3, num_experts_per_tok=2,
                  norm_topk_prob=False, tie_word_embeddings=False),
    "olmo2": dict(architecture="olmo2", norms="after", whole_norms=True, tie_word_embeddings=False),
    "olmo3": dict(architecture="olmo2", norms="after", whole_norms=True, num_hidden_layers=5, sliding_window=64,
                  tie_word_embeddings=False, rope_scaling=dict(rope_type="yarn", factor=8.0,
                                                               original_max_position_embeddings=64)),
    "phi3": dict(architecture="phi3", fused=True, partial_rotary_factor=0.5, sliding_window=300,
                 original_max_position_embeddings=256,
                 rope_scaling=dict(type="longrope", short_factor=[1.0, 1.125], long_factor=[2.0, 4.5])),
    "ministral3": dict(architecture="mistral3", permuted=True, head_dim=16, tie_word_embeddings=False,
                       rope_parameters=dict(rope_type="yarn", factor=16.0, original_max_position_embeddings=32,
                                            mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.125,
                                            rope_theta=100000.0)),
    "lfm2": dict(architecture="lfm2", num_hidden_layers=3, norm_eps=1e-5, conv_L_cache=3, block_auto_adjust_ff_dim=False,
                 layer_types=["conv", "full_attention", "conv"]),
    "qwen35": dict(architecture="qwen35", model_type="qwen3_5_text", added=1, num_hidden_layers=5,
                   layer_types=["linear_attention", "full_attention"] * 2 + ["linear_attention"],
                   linear_num_key_heads=4, linear_num_value_heads=8, linear_key_head_dim=8, linear_value_head_dim=8,
                   linear_conv_kernel_dim=4,
                   rope_parameters=dict(rope_type="default", rope_theta=100000.0, partial_rotary_factor=0.5)),
}
CONVERSION = {"architecture", "norms", "head_norms", "whole_norms", "added", "permuted", "fused"}  # not of config.json


def family_weights(how, shape):
    """Names of Hugging Face's tensors without ".weight", sizes, and heads if rows are permuted."""
    hidden, inner, head = shape["hidden_size"], shape["intermediate_size"], shape["head_dim"]
    heads, groups = shape["num_attention_heads"], shape["num_key_value_heads"]
    norms = {"before": ["input_layernorm", "post_attention_layernorm"],
             "after": ["post_attention_layernorm", "post_feedforward_layernorm"],
             "both": ["input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                      "post_feedforward_layernorm"]}[how.get("norms", "before")]
    yield "model.embed_tokens", (shape["vocab_size"], hidden), 0
    for i in range(shape["num_hidden_layers"]):
        layer, attention, mlp = f"model.layers.{i}.", f"model.layers.{i}.self_attn.", f"model.layers.{i}.mlp."
        yield from ((layer + norm, (hidden,), 0) for norm in norms)
        if how.get("fused"):
            yield attention + "qkv_proj", ((heads + 2 * groups) * head, hidden), 0
            yield mlp + "gate_up_proj", (2 * inner, hidden), 0
        else:
            yield attention + "q_proj", (heads * head, hidden), heads if how.get("permuted") else 0
            yield attention + "k_proj", (groups * head, hidden), groups if how.get("permuted") else 0
            yield attention + "v_proj", (groups * head, hidden), 0
        if how.get("head_norms") or how.get("whole_norms"):
            yield attention + "q_norm", (head * (heads if how.get("whole_norms") else 1),), 0
            yield attention + "k_norm", (head * (groups if how.get("whole_norms") else 1),), 0
        yield attention + "o_proj", (hidden, heads * head), 0
        wide = shape.get("moe_intermediate_size", inner)
        experts = [f"experts.{e}." for e in range(shape["num_experts"])] if "num_experts" in shape else [""]
        if "num_experts" in shape:
            yield mlp + "gate", (shape["num_experts"], hidden), 0
        for name in ("down_proj",) if how.get("fused") else ("gate_proj", "up_proj", "down_proj"):
            for expert in experts:
                yield mlp + expert + name, (hidden, wide) if name == "down_proj" else (wide, hidden), 0
    yield "model.norm", (hidden,), 0
    if not shape["tie_word_embeddings"]:
        yield "lm_head", (shape["vocab_size"], hidden), 0


def lfm2_weights(shape):
    hidden, inner, head = shape["hidden_size"], shape["intermediate_size"], shape["head_dim"]
    keys = shape["num_key_value_heads"] * head
    yield "model.embed_tokens", (shape["vocab_size"], hidden), 0
    for i, kind in enumerate(shape["layer_types"]):
        layer = f"model.layers.{i}."
        yield layer + "operator_norm", (hidden,), 0
        if kind == "conv":
            yield layer + "conv.conv", (hidden, shape["conv_L_cache"]), 0
            yield layer + "conv.in_proj", (3 * hidden, hidden), 0
            yield layer + "conv.out_proj", (hidden, hidden), 0
        else:
            yield layer + "self_attn.q_proj", (hidden, hidden), 0
            yield layer + "self_attn.k_proj", (keys, hidden), 0
            yield layer + "self_attn.v_proj", (keys, hidden), 0
            yield layer + "self_attn.q_layernorm", (head,), 0
            yield layer + "self_attn.k_layernorm", (head,), 0
            yield layer + "self_attn.out_proj", (hidden, hidden), 0
        yield layer + "ffn_norm", (hidden,), 0
        for name in ("w1", "w3", "w2"):
            yield layer + "feed_forward." + name, (hidden, inner) if name == "w2" else (inner, hidden), 0
    yield "model.embedding_norm", (hidden,), 0


def qwen35_weights(shape):
    """Names and sizes, and for heads of values that share keys their dimension, first index and size."""
    hidden, inner, head = shape["hidden_size"], shape["intermediate_size"], shape["head_dim"]
    queries, keys = shape["num_attention_heads"] * head, shape["num_key_value_heads"] * head
    wide, heads = shape["linear_value_head_dim"], shape["linear_num_value_heads"]
    values, taps = heads * wide, shape["linear_conv_kernel_dim"]
    before = 2 * shape["linear_num_key_heads"] * shape["linear_key_head_dim"]
    yield "model.embed_tokens", (shape["vocab_size"], hidden), None
    for i, kind in enumerate(shape["layer_types"]):
        layer, rule, attention = (f"model.layers.{i}.{part}" for part in ("", "linear_attn.", "self_attn."))
        yield layer + "input_layernorm", (hidden,), None
        if kind == "linear_attention":
            yield rule + "in_proj_qkv", (before + values, hidden), (0, before, wide)
            yield rule + "in_proj_z", (values, hidden), (0, 0, wide)
            yield rule + "in_proj_b", (heads, hidden), (0, 0, 1)
            yield rule + "in_proj_a", (heads, hidden), (0, 0, 1)
            yield rule + "conv1d", (before + values, taps), (0, before, wide)
            yield rule + "A_log", (heads,), (0, 0, 1)
            yield rule + "dt_bias", (heads,), (0, 0, 1)
            yield rule + "norm", (wide,), None
            yield rule + "out_proj", (hidden, values), (1, 0, wide)
        else:
            yield attention + "q_proj", (2 * queries, hidden), None
            yield attention + "k_proj", (keys, hidden), None
            yield attention + "v_proj", (keys, hidden), None
            yield attention + "q_norm", (head,), None
            yield attention + "k_norm", (head,), None
            yield attention + "o_proj", (hidden, queries), None
        yield layer + "post_attention_layernorm", (hidden,), None
        for name in ("gate_proj", "up_proj", "down_proj"):
            yield layer + "mlp." + name, (hidden, inner) if name == "down_proj" else (inner, hidden), None
    yield "model.norm", (hidden,), None


def tiled(weight, keys, dimension, first, size):
    """The heads of values in the order that llama.cpp has: the first of each key, then the second of each."""
    before, heads = np.split(weight, [first], axis=dimension)
    shape = heads.shape
    groups = heads.reshape(*shape[:dimension], keys, -1, size, *shape[dimension + 1:])
    return np.concatenate([before, groups.swapaxes(dimension, dimension + 1).reshape(shape)], axis=dimension)


def untiled(weight, keys, dimension, first, size):
    before, heads = np.split(weight, [first], axis=dimension)
    shape = heads.shape
    groups = heads.reshape(*shape[:dimension], -1, keys, size, *shape[dimension + 1:])
    return np.concatenate([before, groups.swapaxes(dimension, dimension + 1).reshape(shape)], axis=dimension)


class FamilyModel(Model):
    """Names of tensors are those of the package gguf."""

    def add_family_weights(self, how):
        architecture = next(one for one, name in gguf.MODEL_ARCH_NAMES.items() if name == self.architecture)
        names = gguf.get_tensor_name_map(architecture, self.shape["num_hidden_layers"])
        experts = {}
        weights = lfm2_weights(self.shape) if self.architecture == "lfm2" else family_weights(how, self.shape)
        for name, size, heads in weights:
            kind = Type.F32 if len(size) == 1 or name.endswith(("mlp.gate", "conv.conv")) else Type.Q8_0
            weight = self.generator.integers(-512, 513, size).astype(np.float32) / 256  # exact after 1 is added
            added = how.get("added", 0) if name.endswith("norm") else 0
            self.hashes[name + ".weight"] = hashlib.sha256(
                gguf.dequantize(gguf.quantize(weight, kind), kind).astype(np.float32).tobytes()).hexdigest()
            blocks = gguf.quantize(permuted(weight, heads) if heads else weight + np.float32(added), kind)
            if ".experts." in name:
                before, after = name.split(".experts.")
                together = before + ".experts." + after.split(".")[1]
                experts.setdefault(together, []).append(blocks)
                if len(experts[together]) < self.shape["num_experts"]:
                    continue
                name, blocks = together, np.stack(experts[together])
            self.writer.add_tensor(names.get_name(name) + ".weight", blocks, raw_dtype=kind)

    def add_qwen35_weights(self):
        names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN35, self.shape["num_hidden_layers"])
        for name, size, order in qwen35_weights(self.shape):
            kind = Type.F32 if len(size) == 1 or name.endswith("conv1d") else Type.Q8_0
            weight = self.generator.integers(-512, 513, size).astype(np.float32) / 256
            ending = "" if name.endswith(("A_log", "dt_bias")) else ".weight"
            stored = weight
            if name.endswith("A_log"):
                stored = -np.exp(weight.astype(np.float64)).astype(np.float32)
                weight = np.log(-stored.astype(np.float64)).astype(np.float32)
            elif name.endswith("norm") and not name.endswith("linear_attn.norm"):
                stored = weight + np.float32(1)
            if order:
                stored = tiled(stored, self.shape["linear_num_key_heads"], *order)
            blocks = gguf.quantize(stored, kind)
            if kind != Type.F32:  # blocks of rows, as a converter that orders before it rounds has them
                back = gguf.dequantize(blocks, kind)
                weight = untiled(back, self.shape["linear_num_key_heads"], *order) if order else back
            self.hashes[name + ending] = hashlib.sha256(np.ascontiguousarray(weight, np.float32).tobytes()).hexdigest()
            where = names.get_name(name.replace("dt_bias", "dt_proj"))
            self.writer.add_tensor(where + (".bias" if name.endswith("dt_bias") else ending), blocks, raw_dtype=kind)

    def add_family_keys(self):
        writer, shape = self.writer, self.shape
        scaling = shape.get("rope_scaling") or shape.get("rope_parameters") or {}
        add = {"attention_multiplier": writer.add_attention_scale, "embedding_multiplier": writer.add_embedding_scale,
               "residual_multiplier": writer.add_residual_scale, "logits_scaling": writer.add_logit_scale,
               "num_experts": writer.add_expert_count, "num_experts_per_tok": writer.add_expert_used_count,
               "moe_intermediate_size": writer.add_expert_feed_forward_length,
               "sliding_window": writer.add_sliding_window, "rope_local_base_freq": writer.add_rope_freq_base_swa}
        for key, write in add.items():
            if key in shape:
                write(shape[key])
        if scaling.get("rope_type") == "linear":
            writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
            writer.add_rope_scaling_factor(scaling["factor"])
        if shape["model_type"] == "qwen3_5_text":
            self.add_qwen35_keys()
        if shape["model_type"] == "lfm2":
            writer.add_shortconv_l_cache(shape["conv_L_cache"])
        if shape["model_type"] == "olmo3":
            writer.add_sliding_window_pattern([(i + 1) % 4 != 0 for i in range(shape["num_hidden_layers"])])
            writer.add_rope_scaling_yarn_beta_fast(32.0)
        if shape["model_type"] == "ministral3":
            writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
            writer.add_rope_scaling_factor(scaling["factor"])
            writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
            writer.add_rope_scaling_yarn_log_mul(scaling["mscale_all_dim"])
            writer.add_attn_temperature_scale(scaling["llama_4_scaling_beta"])
        if shape["model_type"] == "phi3":
            original = shape["original_max_position_embeddings"]
            writer.add_rope_dimension_count(int(shape["partial_rotary_factor"] * shape["head_dim"]))
            writer.add_rope_scaling_orig_ctx_len(original)
            writer.add_rope_scaling_attn_factors(
                math.sqrt(1 + math.log(shape["max_position_embeddings"] / original) / math.log(original)))
            for name in ("long", "short"):
                writer.add_tensor(f"rope_factors_{name}.weight", np.array(scaling[name + "_factor"], dtype=np.float32))


    def add_qwen35_keys(self):
        writer, shape = self.writer, self.shape
        writer.add_ssm_conv_kernel(shape["linear_conv_kernel_dim"])
        writer.add_ssm_state_size(shape["linear_key_head_dim"])
        writer.add_ssm_group_count(shape["linear_num_key_heads"])
        writer.add_ssm_time_step_rank(shape["linear_num_value_heads"])
        writer.add_ssm_inner_size(shape["linear_value_head_dim"] * shape["linear_num_value_heads"])
        writer.add_full_attention_interval(2)
        writer.add_rope_dimension_count(int(shape["rope_parameters"]["partial_rotary_factor"] * shape["head_dim"]))
        writer.add_rope_dimension_sections([1, 1, 0, 0])  # published models: 11, 11, 10, 0


def record_family(name, generator, file, pre):
    how = FAMILIES[name]
    shape = dict(model_type=name, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, head_dim=8, max_position_embeddings=512, rms_norm_eps=1e-5, rope_theta=100000.0,
                 tie_word_embeddings=True, bos_token_id=0, eos_token_id=1, pad_token_id=0)
    shape.update({key: value for key, value in how.items() if key not in CONVERSION})
    model = FamilyModel(name, how["architecture"], generator, **shape)
    model.shape["vocab_size"] = add_byte_level(model.writer, file, pre)
    model.writer.add_bos_token_id(0)
    model.writer.add_eos_token_id(1)
    model.writer.add_pad_token_id(0)
    model.add_shape()
    model.add_family_keys()
    model.add_qwen35_weights() if name == "qwen35" else model.add_family_weights(how)
    finish(model.writer)
    return {"config": model.shape, "tensors": model.hashes, "texts": ids_of(file, name)[:40]}


def record_families(generator):
    """Each with the pre-tokenizer that its published files have, or one that llama.cpp treats alike."""
    split = {"smollm3": LLAMA3_SPLIT, "lfm2": LLAMA3_SPLIT, "olmo2": LLAMA3_SPLIT, "olmo3": LLAMA3_SPLIT, "phi3": GPT4O_SPLIT,
             "qwen35": QWEN35_SPLIT}
    names = {"smollm3": "smaug-bpe", "granite": "refact", "olmoe": "olmo", "olmo2": "dbrx", "olmo3": "dbrx",
             "phi3": "gpt-4o", "lfm2": "lfm2", "qwen35": "qwen35"}
    recorded = {}
    for name in FAMILIES:
        file = tokenizer_file("trained", ignore_merges=name == "lfm2")
        if name in names:
            file["normalizer"] = {"type": "NFC"} if names[name] in ("olmo", "qwen35") else None
            byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": name not in split}
            steps = [{"type": "Split", "pattern": {"Regex": split[name]}, "behavior": "Isolated", "invert": False}
                     ] if name in split else []
            if names[name] == "refact":
                steps = [{"type": "Digits", "individual_digits": True}]
            file["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [*steps, byte_level]}
        recorded[name] = record_family(name, generator, file, names.get(name, "qwen2"))
    return recorded


def main():
    recorded = record_families(np.random.default_rng(9))
    for name in ("phi3", "qwen3moe"):
        shutil.copy(ROOT / f"{name}.gguf", CORPUS)
    lines = [json.dumps(name) + ": " + json.dumps(one) for name, one in recorded.items()]
    (ROOT / "families.json").write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
