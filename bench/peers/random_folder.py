#!/usr/bin/env python3
"""A model of Qwen2 with random weights in bfloat16, as a Hugging Face folder that holds model.gguf as well.

    bench/peers/random_folder.py SHAPE FOLDER      SHAPE: a config.json, as in bench/shapes
"""
import json
import pathlib
import sys

INIT_STD = 0.02


def weight_shapes(config):
    hidden, width = config["hidden_size"], config["intermediate_size"]
    head = config.get("head_dim", hidden // config["num_attention_heads"])
    queries, keys = head * config["num_attention_heads"], head * config["num_key_value_heads"]
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        for name, rows in (("q", queries), ("k", keys), ("v", keys)):
            shapes[f"{at}self_attn.{name}_proj.weight"] = (rows, hidden)
            shapes[f"{at}self_attn.{name}_proj.bias"] = (rows,)
        shapes[f"{at}self_attn.o_proj.weight"] = (hidden, queries)
        shapes[f"{at}mlp.gate_proj.weight"] = shapes[f"{at}mlp.up_proj.weight"] = (width, hidden)
        shapes[f"{at}mlp.down_proj.weight"] = (hidden, width)
        shapes[f"{at}input_layernorm.weight"] = shapes[f"{at}post_attention_layernorm.weight"] = (hidden,)
    return shapes


GGUF_NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}


def gguf_name(name):
    """Of a weight of Qwen2: model.layers.3.mlp.up_proj.weight is blk.3.ffn_up.weight."""
    stem, kind = name.rsplit(".", 1)
    if stem.startswith("model.layers."):
        layer, inner = stem.removeprefix("model.layers.").split(".", 1)
        return f"blk.{layer}.{GGUF_NAMES[inner]}.{kind}"
    return f"{GGUF_NAMES[stem]}.{kind}"


def write_gguf(config, weights, path):
    import gguf

    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("no_vocab")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    import torch

    for name, weight in weights.items():
        if weight.dim() == 1:
            writer.add_tensor(gguf_name(name), weight.float().numpy())
        else:
            bits = weight.view(torch.uint16).numpy().view("uint8").reshape(weight.shape[0], -1)
            writer.add_tensor(gguf_name(name), bits, raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_folder(shape, folder):
    import safetensors.torch
    import torch

    config = json.loads(pathlib.Path(shape).read_text())
    generator = torch.Generator().manual_seed(0)
    weights = {}
    for name, size in weight_shapes(config).items():
        if name.endswith("norm.weight"):
            weights[name] = torch.ones(size).bfloat16()
        else:
            weights[name] = (torch.randn(size, generator=generator) * INIT_STD).bfloat16()
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.torch.save_file(weights, folder / "model.safetensors", {"format": "pt"})
    write_gguf(config, weights, folder / "model.gguf")
    # Last, so that a folder with it is complete.
    (folder / "config.json").write_text(json.dumps(config | {"torch_dtype": "bfloat16"}, indent=2))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    make_folder(sys.argv[1], sys.argv[2])
