#!/usr/bin/env python3
"""Records what the Python package gguf makes of GGUF files, for tests/recorded/gguf/; and two files for tests/fuzz.

Run from the repository root with:
    pip install gguf==0.19.0 numpy==2.4.6 tokenizers==0.23.3 sentencepiece==0.2.3
    python3 tools/golden/gguf_files.py

blocks.jsonl.xz   a line per tensor type: random blocks and the float32 numbers that gguf.dequantize makes of them, both
                  as hexadecimal bytes.
quantized.jsonl.xz   a line for each type that Carnot writes: float32 numbers and the blocks that gguf.quantize makes of
                  them.
NAME.gguf         small random models as llama.cpp's converter writes them, and files that hold only a tokenizer.
expected.json     for each file: config, as Hugging Face's config.json has it; tensors, the SHA-256 of each weight's
                  float32 bytes under its Hugging Face name (rows are quantized one by one, so weights are quantized in
                  Hugging Face's order and need no permutation undone); texts and their token ids, by tokenizers from
                  the tokenizer.json that the vocabulary came from, or by sentencepiece.

gguf_families.py records files of further families.
"""

import hashlib
import io
import json
import lzma
import pathlib
import random
import shutil

import gguf
import numpy as np
import sentencepiece
from gguf import GGMLQuantizationType as Type
from tokenizers import Tokenizer

ROOT = pathlib.Path("tests/recorded/gguf")
CORPUS = pathlib.Path("tests/fuzz/corpus/gguf")
TOKENIZERS = pathlib.Path("tests/golden/tokenizer")
TYPES = [Type.F32, Type.F16, Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.Q4_K, Type.Q5_K,
         Type.Q6_K]
HALVES = {Type.F16: [0], Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0],
          Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208]}  # where a block has float16 numbers
WORDS = ["Where", "was", "Marta", "Quell", "Oslo", "born", "in", "don't", "I'LL", "'s", "2024", "3.14", "\u00bd",
         "\u0663", "caf\u00e9", "cafe\u0301", "\u041d\u0435\u0449\u043e", "\u4f60\u597d", "\U0001f999", "\n", "\n\n",
         "\r\n", "\t", "...", "?!", "(", "_", "a_b", "\u00a0", "/", "camelCase", "HTTPServer", "<|im_end|>", "<|end|>",
         "</s>", "[INST]", "<think>"]


def texts(seed, number=60):
    generator = random.Random(seed)
    for _ in range(number):
        yield "".join(generator.choice(WORDS) + generator.choice(["", " ", "  "]) for _ in range(generator.randint(1, 14)))


def record_blocks(generator):
    lines = []
    for kind in TYPES:
        width, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = generator.integers(0, 256, (24 if width == 256 else 96, size), dtype=np.uint8)
        for at in HALVES.get(kind, []):  # finite: NaN has more than one pattern of bits
            numbers = generator.integers(0, 0x7C00, len(blocks)).astype(np.uint16)
            numbers[:4] = [0, 1, 0x3FF, 0x7BFF]
            numbers |= generator.integers(0, 2, len(blocks)).astype(np.uint16) << 15
            blocks[:, at:at + 2] = numbers.view(np.uint8).reshape(-1, 2)
        if kind in (Type.F32, Type.BF16):
            blocks[:, -1] &= 0xBF
        values = gguf.dequantize(blocks, kind).astype(np.float32)
        assert np.isfinite(values).all()
        lines.append(json.dumps({"type": kind.name, "number": int(kind), "blocks": blocks.tobytes().hex(),
                                 "values": values.tobytes().hex()}))
    with lzma.open(ROOT / "blocks.jsonl.xz", "wt", preset=9) as out:
        out.write("\n".join(lines) + "\n")


def record_quantized(generator):
    values = generator.standard_normal((48, 32)).astype(np.float32)
    values *= 2.0 ** generator.integers(-32, 13, (48, 1)).astype(np.float32)
    values[:3] = [[0.0], [1e-35], [-2.0 ** -24]]
    values[3] = np.arange(-16, 16) / 2 * (127 / 8)  # halves after the division by the scale
    values[4, :3] = [65504, -65519, 2.0 ** -25]
    values[5, :4] = [1 + 2.0 ** -11, 1 + 3 * 2.0 ** -11, 1 + 2.0 ** -8, 1 + 3 * 2.0 ** -8]  # ties of F16 and BF16
    lines = [json.dumps({"type": kind.name, "values": values.tobytes().hex(),
                         "blocks": gguf.quantize(values, kind).tobytes().hex()})
             for kind in (Type.F32, Type.F16, Type.BF16, Type.Q8_0)]
    with lzma.open(ROOT / "quantized.jsonl.xz", "wt", preset=9) as out:
        out.write("\n".join(lines) + "\n")


def add_byte_level(writer, file, pre, padded_to=0):
    """The vocabulary of a tokenizer.json as llama.cpp's converter stores it, with unused tokens at the end."""
    tokens = {number: text for text, number in file["model"]["vocab"].items()}
    types = dict.fromkeys(tokens, gguf.TokenType.NORMAL)
    for added in file["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    for number in range(padded_to):
        if number not in tokens:
            tokens[number], types[number] = f"[PAD{number}]", gguf.TokenType.UNUSED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([tokens[number] for number in range(len(tokens))])
    writer.add_token_types([types[number] for number in range(len(tokens))])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in file["model"]["merges"]])
    return len(tokens)


def ids_of(file, seed):
    tokenizer = Tokenizer.from_str(json.dumps(file))
    return [[text, tokenizer.encode(text, add_special_tokens=False).ids] for text in texts(seed)]


def tokenizer_file(name, pre_tokenizer=None, **model):
    file = json.loads((TOKENIZERS / f"{name}.json").read_text())
    file["model"].update(model)
    if pre_tokenizer:
        file["pre_tokenizer"] = pre_tokenizer
    return file


def permuted(weight, heads):
    """LlamaModel.permute of llama.cpp's converter."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


class Model:
    def __init__(self, name, architecture, generator, **shape):
        self.writer = gguf.GGUFWriter(ROOT / f"{name}.gguf", architecture)
        self.name, self.architecture, self.generator, self.shape, self.hashes = name, architecture, generator, shape, {}
        self.kinds = iter([Type.Q4_1, Type.Q8_0, Type.F16, Type.Q5_0, Type.BF16, Type.Q4_0, Type.Q5_1, Type.F32] * 20)

    def add(self, stored, name, *size, heads=0, kind=None):
        kind = kind or (Type.F32 if len(size) == 1 else next(self.kinds))
        weight = self.generator.standard_normal(size).astype(np.float32)
        self.hashes[name] = hashlib.sha256(
            gguf.dequantize(gguf.quantize(weight, kind), kind).astype(np.float32).tobytes()).hexdigest()
        self.writer.add_tensor(stored, gguf.quantize(permuted(weight, heads) if heads else weight, kind), raw_dtype=kind)

    def add_layers(self):
        shape, biases, norms = self.shape, self.architecture == "qwen2", self.architecture == "qwen3"
        hidden, inner, head = shape["hidden_size"], shape["intermediate_size"], shape["head_dim"]
        heads, groups = shape["num_attention_heads"], shape["num_key_value_heads"]
        both = self.architecture == "llama"
        self.add("token_embd.weight", "model.embed_tokens.weight", shape["vocab_size"], hidden)
        for i in range(shape["num_hidden_layers"]):
            def layer(stored, name, *size, **how):
                self.add(f"blk.{i}.{stored}", f"model.layers.{i}.{name}", *size, **how)
            layer("attn_norm.weight", "input_layernorm.weight", hidden)
            layer("ffn_norm.weight", "post_attention_layernorm.weight", hidden)
            for short, long, number in (("q", "q_proj", heads), ("k", "k_proj", groups), ("v", "v_proj", groups)):
                layer(f"attn_{short}.weight", f"self_attn.{long}.weight", number * head, hidden,
                      heads=number if both and short != "v" else 0)
                if biases:
                    layer(f"attn_{short}.bias", f"self_attn.{long}.bias", number * head)
                if norms and short != "v":
                    layer(f"attn_{short}_norm.weight", f"self_attn.{short}_norm.weight", head)
            layer("attn_output.weight", "self_attn.o_proj.weight", hidden, heads * head)
            layer("ffn_gate.weight", "mlp.gate_proj.weight", inner, hidden)
            layer("ffn_up.weight", "mlp.up_proj.weight", inner, hidden)
            layer("ffn_down.weight", "mlp.down_proj.weight", hidden, inner)
        self.add("output_norm.weight", "model.norm.weight", hidden)
        if not shape["tie_word_embeddings"]:
            self.add("output.weight", "lm_head.weight", shape["vocab_size"], hidden)

    def add_shape(self):
        writer, shape = self.writer, self.shape
        writer.add_block_count(shape["num_hidden_layers"])
        writer.add_context_length(shape["max_position_embeddings"])
        writer.add_embedding_length(shape["hidden_size"])
        writer.add_feed_forward_length(shape["intermediate_size"])
        writer.add_head_count(shape["num_attention_heads"])
        kinds = shape.get("layer_types", [])
        heads = [shape["num_key_value_heads"] if kind == "full_attention" else 0 for kind in kinds]
        writer.add_head_count_kv(heads if "conv" in kinds else shape["num_key_value_heads"])
        writer.add_layer_norm_rms_eps(shape["rms_norm_eps"])
        writer.add_rope_freq_base(shape["rope_theta"])
        if shape["head_dim"] != shape["hidden_size"] // shape["num_attention_heads"]:
            writer.add_key_length(shape["head_dim"])
            writer.add_value_length(shape["head_dim"])
        scaling = shape.get("rope_scaling") or {}
        if scaling.get("rope_type") == "yarn":
            writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
            writer.add_rope_scaling_factor(scaling["factor"])
            writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
        if scaling.get("rope_type") == "llama3":
            writer.add_tensor("rope_freqs.weight", llama3_factors(shape, scaling))


def llama3_factors(shape, scaling):
    size = shape["head_dim"]
    frequencies = 1.0 / shape["rope_theta"] ** (np.arange(0, size, 2, dtype=np.float32) / size)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    factors = []
    for wavelength in 2 * np.pi / frequencies:
        smooth = (scaling["original_max_position_embeddings"] / wavelength - low) / (high - low)
        factors.append(1 if smooth > 1 else scaling["factor"] if smooth < 0 else
                       1 / ((1 - smooth) / scaling["factor"] + smooth))
    return np.array(factors, dtype=np.float32)


def finish(writer, version=3):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path = writer.path
    content = bytearray(path.read_bytes())
    content[4] = version
    path.write_bytes(content)


def record_model(name, architecture, generator, file, pre, special, version=3, padded_to=0, template=None, **shape):
    base = dict(model_type=architecture, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                num_key_value_heads=2, head_dim=16, max_position_embeddings=512, rms_norm_eps=1e-5, rope_theta=100000.0,
                tie_word_embeddings=True)
    model = Model(name, architecture, generator, **dict(base, **shape))
    model.shape["vocab_size"] = add_byte_level(model.writer, file, pre, padded_to)
    model.shape.update(bos_token_id=special[0], eos_token_id=special[1], pad_token_id=special[2])
    model.writer.add_bos_token_id(special[0])
    model.writer.add_eos_token_id(special[1])
    model.writer.add_pad_token_id(special[2])
    if template:
        model.writer.add_chat_template(template)
    model.add_shape()
    model.add_layers()
    finish(model.writer, version)
    return {"config": model.shape, "tensors": model.hashes, "texts": ids_of(file, name)}


def record_tokenizer(name, file, pre):
    writer = gguf.GGUFWriter(ROOT / f"{name}.gguf", "llama")
    add_byte_level(writer, file, pre)
    finish(writer)
    return {"texts": ids_of(file, name)}


def record_sentence_piece(name):
    model = io.BytesIO()
    lines = [text.replace("\n", " ").replace("\r", " ") for text in texts(name + " training", 3000)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=420, model_type="bpe", byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=2, num_threads=1,
        split_digits=True, allow_whitespace_only_pieces=True, character_coverage=0.9995)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    types = [gguf.TokenType.UNKNOWN if pieces.is_unknown(i) else gguf.TokenType.CONTROL if pieces.is_control(i) else
             gguf.TokenType.BYTE if pieces.is_byte(i) else gguf.TokenType.NORMAL for i in range(len(pieces))]
    writer = gguf.GGUFWriter(ROOT / f"{name}.gguf", "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list([pieces.id_to_piece(i) for i in range(len(pieces))])
    writer.add_token_scores([pieces.get_score(i) for i in range(len(pieces))])
    writer.add_token_types(types)
    writer.add_bos_token_id(pieces.bos_id())
    writer.add_eos_token_id(pieces.eos_id())
    writer.add_unk_token_id(pieces.unk_id())
    finish(writer)
    # sentencepiece spells a control token in a text; transformers does not.
    plain = [text for text in texts(name + " texts") if "</s>" not in text]
    return {"texts": [[text, pieces.encode(text)] for text in plain]}


def main():
    ROOT.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(7)
    record_blocks(generator)
    record_quantized(np.random.default_rng(8))
    digits = {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]}
    gpt2 = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    llama3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                  original_max_position_embeddings=8192)
    yarn = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=128)
    smollm = tokenizer_file("llama3", digits, ignore_merges=False)
    qwen2 = tokenizer_file("trained", ignore_merges=False)
    expected = {
        "smollm": record_model("smollm", "llama", generator, smollm, "smollm", (0, 1, 1), template="{{ bos_token }}"),
        "llama3": record_model("llama3", "llama", generator, tokenizer_file("llama3"), "llama-bpe", (0, 1, 2),
                               rope_theta=500000.0, rope_scaling=llama3, tie_word_embeddings=False, num_hidden_layers=1),
        "qwen2": record_model("qwen2", "qwen2", generator, qwen2, "qwen2", (0, 1, 0), version=2, padded_to=320,
                              rope_scaling=yarn, rms_norm_eps=1e-6, rope_theta=1000000.0),
        "qwen3": record_model("qwen3", "qwen3", generator, qwen2, "qwen2", (0, 1, 0), head_dim=32,
                              tie_word_embeddings=False, num_hidden_layers=1),
        "gpt2": record_tokenizer("gpt2", tokenizer_file("llama3", gpt2, ignore_merges=False), "gpt-2"),
        "tekken": record_tokenizer("tekken", tokenizer_file("tekken", ignore_merges=True), "tekken"),
        "sentence_piece": record_sentence_piece("sentence_piece"),
    }
    record_model("fuzz", "llama", generator, qwen2, "smollm", (0, 1, 1), num_hidden_layers=1, hidden_size=32,
                 head_dim=8, intermediate_size=32)
    CORPUS.mkdir(parents=True, exist_ok=True)
    (ROOT / "fuzz.gguf").rename(CORPUS / "model.gguf")
    shutil.copy(ROOT / "sentence_piece.gguf", CORPUS)
    (ROOT / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
