#!/usr/bin/env python3
"""Records what Hugging Face transformers computes on tiny random decoders, for tests/golden/transformers/.

Run from the repository root with:  pip install torch==2.13.0 transformers==5.23.0 numpy safetensors
    python3 tools/golden/transformers_parity.py CASE ...   # without names, all

llama2 to qwen3 in CASES were recorded with transformers 4.57.6, whose config.json is older; with --compare, a case is
computed again and compared with what is stored instead.

Per case one folder: config.json and weights as save_pretrained writes them, and expected.safetensors, computed in
float64 throughout: the casts to float32 inside norms, softmax and rotary embedding are redirected to float64, nothing
else is changed. Tokens are stored as bytes.
  tokens, positions, offsets  three ragged sequences packed one after the other (eager attention, one at a time)
  hidden                      [T, H] after the final norm, divided by logits_scaling if the family has it
  rows, targets               rows that predict a next token, and that token
  logits                      [3, V] of the last three of `rows`
  logprob, entropy, logsumexp per row of `rows`, nats, temperature 1
  grad.NAME                   gradient G of the mean negative log-prob of the targets, per weight: G itself of a vector;
                              of a matrix (a convolution's has a row per channel) G v and u G, one behind the other, where u_i = v_i = cos(1 + i)
  bfloat16_error              largest error of logprob where transformers computes in bfloat16
  long.tokens                 one sequence of 2560 tokens
  long.rows, long.hidden      a few of its rows, and their hidden states
  long.hidden_single          the same with the rotary angles of a float32 model, all else in float64
  greedy.prompt, greedy.ids   a prompt, and what generate(do_sample=False) appends
"""

import contextlib
import pathlib
import shutil
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

ROOT = pathlib.Path("tests/golden/transformers")
LENGTHS = [7, 1, 19]
LONG = 2560
SHAPE = dict(vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=8192, rms_norm_eps=1e-6, bos_token_id=1, eos_token_id=2,
             attn_implementation="eager")
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
EXPERTS = dict(num_experts=5, num_experts_per_tok=2, experts_implementation="eager")
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=128)


def case(family, dtype, shard="1GB", config="Config", **keys):
    """Classes are looked up when a case is recorded: earlier versions do not have all of them."""
    return lambda: (getattr(transformers, family + "ForCausalLM")(
        getattr(transformers, family + config)(**dict(SHAPE, **keys))), dtype, shard)


CASES = {
    "llama2": case("Llama", torch.float16, num_key_value_heads=4, rms_norm_eps=1e-5),
    "llama3": case("Llama", torch.bfloat16, shard="20KB", rope_theta=500000.0, head_dim=16,
                   rope_scaling=LLAMA3, tie_word_embeddings=True, eos_token_id=[2, 3, 4]),
    "llama_linear": case("Llama", torch.float16, num_hidden_layers=1,
                         rope_scaling=dict(rope_type="linear", factor=2.5)),
    "mistral": case("Mistral", torch.float32, head_dim=12, num_key_value_heads=1,
                    sliding_window=None, rope_theta=1000000.0),
    "qwen2": case("Qwen2", torch.float32, tie_word_embeddings=True),
    "qwen2_yarn": case("Qwen2", torch.bfloat16, rope_theta=1000000.0, rope_scaling=YARN,
                       num_key_value_heads=1),
    "qwen3": case("Qwen3", torch.bfloat16, head_dim=16, rope_theta=1000000.0,
                  tie_word_embeddings=False),
    "qwen3_window": case("Qwen3", torch.bfloat16, head_dim=16, use_sliding_window=True,
                         sliding_window=5, max_window_layers=1),
    "mistral_window": case("Mistral", torch.bfloat16, sliding_window=40),
    "smollm3": case("SmolLM3", torch.bfloat16, no_rope_layers=[1, 0], pad_token_id=0),
    "olmo2": case("Olmo2", torch.bfloat16, rms_norm_eps=1e-5, pad_token_id=0,
                  rope_parameters=dict(rope_type="default", rope_theta=500000.0)),
    "olmo3": case("Olmo3", torch.bfloat16, rms_norm_eps=1e-5, pad_token_id=0, sliding_window=16,
                  layer_types=["sliding_attention", "full_attention"],
                  rope_parameters=dict(full_attention=dict(YARN, rope_theta=500000.0),
                                       sliding_attention=dict(rope_type="default", rope_theta=500000.0))),
    "granite": case("Granite", torch.bfloat16, attention_multiplier=0.2,
                    embedding_multiplier=3.0, residual_multiplier=0.7, logits_scaling=1.5),
    "gemma3": case("Gemma3", torch.bfloat16, config="TextConfig", num_hidden_layers=3, head_dim=16,
                   query_pre_attn_scalar=24, sliding_window=11, pad_token_id=0, tie_word_embeddings=False,
                   layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                   rope_parameters=dict(full_attention=dict(rope_type="linear", factor=4.0, rope_theta=1000000.0),
                                        sliding_attention=dict(rope_type="default", rope_theta=10000.0))),
    "ministral3": case("Ministral3", torch.bfloat16, head_dim=16, rms_norm_eps=1e-5,
                       pad_token_id=0, sliding_window=None,
                       rope_parameters=dict(YARN, rope_theta=1000000.0, original_max_position_embeddings=8, mscale=0.8,
                                            mscale_all_dim=0.5, llama_4_scaling_beta=0.3)),
    "ministral3_window": case("Ministral3", torch.bfloat16, head_dim=8, pad_token_id=0,
                              sliding_window=40, tie_word_embeddings=True,
                              rope_parameters=dict(rope_type="default", rope_theta=10000.0, llama_4_scaling_beta=0.1,
                                                   original_max_position_embeddings=16)),
    # The factors that transformers takes for these lengths: short, none, and the same for all.
    "phi3": case("Phi3", torch.bfloat16, tie_word_embeddings=True, pad_token_id=0,
                 original_max_position_embeddings=4096,
                 rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.75,
                                      short_factor=[1.0, 1.2, 2.5], long_factor=[1.1, 7.0, 40.0])),
    "phi3_window": case("Phi3", torch.bfloat16, num_key_value_heads=4, pad_token_id=0,
                        sliding_window=40),
    "phi3_long": case("Phi3", torch.bfloat16, pad_token_id=0, original_max_position_embeddings=16,
                      rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, attention_factor=1.25,
                                           short_factor=[1.0, 3.0, 7.0, 40.0], long_factor=[1.0, 3.0, 7.0, 40.0])),
    "qwen3_moe": case("Qwen3Moe", torch.bfloat16, head_dim=16, moe_intermediate_size=24,
                      norm_topk_prob=True, mlp_only_layers=[1], num_hidden_layers=3, **EXPERTS),
    "qwen3_moe_window": case("Qwen3Moe", torch.bfloat16, moe_intermediate_size=24,
                             decoder_sparse_step=2, use_sliding_window=True, sliding_window=9, **EXPERTS),
    "olmoe": case("Olmoe", torch.bfloat16, rms_norm_eps=1e-5, pad_token_id=0,
                  **dict(EXPERTS, num_experts_per_tok=3), intermediate_size=24),
    "lfm2": case("Lfm2", torch.bfloat16, num_hidden_layers=3, conv_L_cache=4, norm_eps=1e-5,
                 block_ff_dim=60, block_multiple_of=16, block_ffn_dim_multiplier=1.1, pad_token_id=0,
                 layer_types=["conv", "full_attention", "conv"],
                 rope_parameters=dict(rope_type="default", rope_theta=500000.0)),
    "qwen3_5": case("Qwen3_5", torch.bfloat16, config="TextConfig", num_hidden_layers=3, head_dim=16, pad_token_id=0,
                    layer_types=["linear_attention", "full_attention", "linear_attention"],
                    linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=12, linear_value_head_dim=8,
                    rope_parameters=dict(rope_type="default", rope_theta=100000.0, partial_rotary_factor=0.5)),
    "qwen3_5_turns": case("Qwen3_5", torch.float32, config="TextConfig", full_attention_interval=2, head_dim=8,
                          tie_word_embeddings=True, linear_conv_kernel_dim=3, linear_num_key_heads=2,
                          linear_num_value_heads=2, linear_key_head_dim=8, linear_value_head_dim=20, pad_token_id=0),
}


def randomise(model, generator):
    """Weights large enough that attention and softmax are far from uniform; norms and biases away from 1 and 0."""
    offset = model.config.model_type.startswith(("gemma", "qwen3_5"))  # norms multiply by 1 + weight
    for name, weight in model.named_parameters():
        norm = 0 if offset and "linear_attn" not in name else 1
        noise = torch.randn(weight.shape, generator=generator)
        with torch.no_grad():
            weight.copy_(norm + 0.3 * noise if "norm" in name else 0.5 * noise if "bias" in name
                         else noise / weight.shape[-1] ** 0.5 * (3 if "embed" in name else 1.5))


def set_angles(model):
    """The rotary frequencies, computed in what torch.float is; of each kind of layer if they differ."""
    rotary = model.model.rotary_emb
    for kind in getattr(rotary, "layer_types", [None]):
        name = "" if kind is None else kind + "_"
        rope = rotary.rope_type if kind is None else rotary.rope_type[kind]
        # transformers 4 lists "default" among the others.
        start = ROPE_INIT_FUNCTIONS[rope] if rope in ROPE_INIT_FUNCTIONS else rotary.compute_default_rope_parameters
        frequencies, scaling = start(model.config, **({} if kind is None else {"layer_type": kind}))
        setattr(rotary, name + "inv_freq", frequencies)
        setattr(rotary, name + "attention_scaling", scaling)
        if rope == "longrope":  # its long factors are computed when they are first needed
            rotary.original_inv_freq, rotary.long_inv_freq = frequencies.clone(), None


@contextlib.contextmanager
def double_throughout(model):
    """transformers rounds norms, softmax and angles to float32 whatever the weights' type; here they stay float64."""
    names = (torch.float32, torch.float, torch.Tensor.float)
    torch.float32, torch.float, torch.Tensor.float = torch.float64, torch.float64, torch.Tensor.double
    torch.set_default_dtype(torch.float64)  # of a quotient of two integers
    set_angles(model)
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = names
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def angles_of_a_float32_model(model, length):
    rotary = model.model.rotary_emb
    set_angles(model)
    tables = {}
    for kind in getattr(rotary, "layer_types", [None]):
        found = rotary(torch.zeros(1), torch.arange(length)[None], *([] if kind is None else [kind]))
        tables[kind] = tuple(table.double() for table in found)
    rotary.forward = lambda x, positions=None, kind=None, **_: tables[kind]
    yield
    del rotary.forward


def statistics(logits, targets):
    logprobs = logits.log_softmax(-1)
    return dict(logprob=logprobs.gather(-1, targets[:, None])[:, 0], entropy=-(logprobs.exp() * logprobs).sum(-1),
                logsumexp=logits.logsumexp(-1))


def digest(gradient):
    if gradient.dim() == 1:
        return gradient.clone()
    gradient = gradient.flatten(1)
    weights = [torch.cos(1 + torch.arange(n, dtype=torch.float64)) for n in gradient.shape]
    return torch.cat([gradient @ weights[1], weights[0] @ gradient])


def random_tokens(length, generator):
    return torch.randint(5, SHAPE["vocab_size"], (length,), generator=generator)


@torch.no_grad()
def routing_margin(model, sequences):
    """The least distance between the logits of an expert that computes a token and of one that does not."""
    margin = torch.inf
    for tokens in sequences:
        with double_throughout(model):
            routers = model(tokens[None], output_router_logits=True).router_logits
        for logits in routers:
            best = logits.topk(model.config.num_experts_per_tok + 1).values
            margin = min(margin, (best[:, -2] - best[:, -1]).min().item())
    return margin


def draw(model, dtype, generator):
    """Weights, which are set, and sequences. If near ties of experts would be decided by rounding, others are drawn."""
    while True:
        randomise(model, generator)
        sequences = [random_tokens(length, generator) for length in LENGTHS]
        if not hasattr(model.config, "num_experts_per_tok"):
            return sequences
        model.to(dtype).double()
        if routing_margin(model, sequences) > 0.07:
            return sequences


def stored_parts(name, gradient):
    """By the names of the checkpoint: the experts of a layer are one tensor in memory, and several in the file."""
    if ".experts." not in name:
        return [(name, gradient)]
    parts = []
    for expert, one in enumerate(gradient):
        prefix = name.replace("experts.", f"experts.{expert}.")
        if name.endswith("gate_up_proj"):
            gate, up = one.chunk(2)
            parts += [(prefix.replace("gate_up_proj", "gate_proj.weight"), gate),
                      (prefix.replace("gate_up_proj", "up_proj.weight"), up)]
        else:
            parts.append((prefix + ".weight", one))
    return parts


def record_ragged(model, sequences):
    columns = {}
    begin = 0
    scaling = getattr(model.config, "logits_scaling", 1.0)
    for tokens in sequences:
        with double_throughout(model):
            out = model(tokens[None], output_hidden_states=True)
        logits = out.logits[0]
        parts = dict(tokens=tokens, positions=torch.arange(len(tokens)), hidden=out.hidden_states[-1][0] / scaling,
                     rows=torch.arange(begin, begin + len(tokens) - 1), targets=tokens[1:],
                     **statistics(logits[:-1], tokens[1:]))
        for name, part in parts.items():
            columns.setdefault(name, []).append(part)
        begin += len(tokens)
    recorded = {name: torch.cat(parts) for name, parts in columns.items()}
    (-recorded["logprob"].mean()).backward()
    for name, weight in model.named_parameters():
        for part, gradient in stored_parts(name, weight.grad):
            recorded["grad." + part] = digest(gradient)
    recorded["logits"] = logits[-4:-1]
    recorded["offsets"] = torch.tensor([0] + LENGTHS).cumsum(0)
    return recorded


@torch.no_grad()
def record_long(model, tokens):
    rows = torch.tensor([0, 63, 64, 511, 1500, 2047, 2048, LONG - 1])
    model.set_attn_implementation("sdpa")
    with double_throughout(model):
        hidden = model.model(tokens[None]).last_hidden_state[0]
    with angles_of_a_float32_model(model, LONG), double_throughout(model):
        single = model.model(tokens[None]).last_hidden_state[0]
    model.set_attn_implementation("eager")
    scaling = getattr(model.config, "logits_scaling", 1.0)
    return {"long.tokens": tokens, "long.rows": rows, "long.hidden": hidden[rows] / scaling,
            "long.hidden_single": single[rows] / scaling}


@torch.no_grad()
def record_greedy(model, generator):
    """For the first prompt whose continuation is long, varied and free of near ties."""
    for _ in range(200):
        prompt = random_tokens(6, generator)
        with double_throughout(model):
            out = model.generate(prompt[None], do_sample=False, max_new_tokens=48, pad_token_id=0, output_logits=True,
                                 return_dict_in_generate=True)
        ids = out.sequences[0, len(prompt):]
        best = torch.cat(out.logits).topk(2).values
        margin = (best[:, 0] - best[:, 1]).min().item()
        if len(ids) > 24 and len(ids.unique()) > 8 and margin > 2e-3:
            return {"greedy.prompt": prompt, "greedy.ids": ids}, margin
    raise RuntimeError("no such prompt found; change the case")


@torch.no_grad()
def bfloat16_error(model, sequences, logprob):
    model = model.bfloat16()
    set_angles(model)
    got = torch.cat([statistics(model(tokens[None]).logits[0, :-1].float(), tokens[1:])["logprob"]
                     for tokens in sequences])
    return (got.double() - logprob).abs().max().reshape(1)


def record(name, compare):
    folder = pathlib.Path("/tmp") / name if compare else ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    model, dtype, shard = CASES[name]()
    sequences = draw(model.eval(), dtype, generator)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    model = model.double()
    embedding = model.model.embed_tokens
    if hasattr(embedding, "embed_scale"):
        embedding.embed_scale = torch.tensor(embedding.scalar_embed_scale, dtype=torch.float64)

    recorded = record_ragged(model, sequences)
    recorded.update(record_long(model, random_tokens(LONG, generator)))
    greedy, margin = record_greedy(model, generator)
    recorded.update(greedy)
    recorded["bfloat16_error"] = bfloat16_error(model, sequences, recorded["logprob"])
    for key in ("tokens", "targets", "long.tokens", "greedy.prompt", "greedy.ids"):
        recorded[key] = recorded[key].to(torch.uint8)
    recorded = {key: tensor.detach().contiguous() for key, tensor in recorded.items()}
    if compare:
        stored = load_file(ROOT / name / "expected.safetensors")
        worst = max((recorded[key].double() - stored[key].double()).abs().max().item()
                    for key in stored if key != "bfloat16_error")
        return print(f"{name}: differs by at most {worst:.2e}")
    save_file(recorded, folder / "expected.safetensors")
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{name}: {size} bytes, mean entropy {recorded['entropy'].mean():.3f}, {len(recorded['greedy.ids'])} greedy "
          f"tokens, margin {margin:.4f}, bfloat16 error {recorded['bfloat16_error'].item():.4f}")


if __name__ == "__main__":
    names = [argument for argument in sys.argv[1:] if argument != "--compare"]
    for case_name in names or CASES:
        record(case_name, "--compare" in sys.argv)
