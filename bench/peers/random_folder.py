#!/usr/bin/env python3
"""A model with random weights in bfloat16, as a Hugging Face folder; one of Qwen2 holds model.gguf as well.

    bench/peers/random_folder.py SHAPE FOLDER      SHAPE: a config.json, as in bench/shapes
"""
import json
import pathlib
import sys

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
    import torch
    import transformers

    config = json.loads(pathlib.Path(shape).read_text())
    kind = config["model_type"]
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(kind, **{k: v for k, v in config.items() if k != "model_type"}),
        dtype=torch.bfloat16)
    folder = pathlib.Path(folder)
    model.save_pretrained(folder)
    if kind == "qwen2":
        weights = {name: weight for name, weight in model.state_dict().items() if name != "lm_head.weight"}
        write_gguf(config, weights, folder / "model.gguf")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    make_folder(sys.argv[1], sys.argv[2])
