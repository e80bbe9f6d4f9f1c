#!/usr/bin/env python3
"""What other libraries reach on the same GPU: one cell of the table of tools/gpu_check/bench.

    bench/peers/gpu.py                                   the names of the cells
    bench/peers/gpu.py CELL [--device cuda|cpu] [--small]

Prints one JSON object, as build/gpu_bench does, with `peer_of`: the cell that it is compared with. Models have random
weights and are those of bench/shapes in bfloat16. Peers: transformers' generate with a prompt of 512 tokens and 256
sampled ones, SDPA, the batch at once, without statistics; token statistics over materialised logits, as many tokens at
a time as the memory of 8 GiB of logits takes; a CUDA graph of 300 empty kernels.
"""
import argparse
import json
import pathlib
import time

SHAPES = ["qwen2.5-0.5b", "qwen2.5-1.5b", "qwen2.5-7b"]
BATCHES = [1, 16, 64, 256]
WIDTHS = [896, 1536, 3584]


def cells():
    names = ["peer_graph"]
    names += [f"peer_decode_{shape}_{batch}" for shape in SHAPES for batch in BATCHES]
    names += [f"peer_statistics_{width}_{kind}" for width in WIDTHS for kind in ("forward", "gradient")]
    return names


def finish(device):
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def best_of_three(device, work):
    work()
    best = float("inf")
    for _ in range(3):
        finish(device)
        begin = time.perf_counter()
        work()
        finish(device)
        best = min(best, time.perf_counter() - begin)
    return best


def graph(options):
    import torch

    if options.device != "cuda":
        return {"value": 0, "unit": "us", "better": "lower", "note": "CUDA only"}
    x = torch.zeros(1, device="cuda")
    x.add_(1)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        for _ in range(300):
            x.add_(1)
    seconds = best_of_three("cuda", recorded.replay)
    return {"value": 1e6 * seconds / 300, "unit": "us", "better": "lower",
            "note": "a kernel of a graph of 300 of them, torch.cuda.CUDAGraph"}


def decode(options, shape, batch):
    import torch
    import transformers

    prompt, tokens = (16, 4) if options.small else (512, 256)
    file = "qwen2-smallest" if options.small else shape
    config = transformers.Qwen2Config(**json.loads(pathlib.Path(f"bench/shapes/{file}.json").read_text()))
    with torch.device(options.device):
        torch.set_default_dtype(torch.bfloat16)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()
        ids = torch.randint(0, config.vocab_size, (batch, prompt))

    def generate(count):
        with torch.inference_mode():
            model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=True, temperature=1.0, top_k=0,
                           top_p=1.0, min_new_tokens=count, max_new_tokens=count, pad_token_id=0)
        finish(options.device)

    generate(2)
    times = {}
    for count in (1, tokens + 1):
        begin = time.perf_counter()
        generate(count)
        times[count] = time.perf_counter() - begin
    return {"value": batch * tokens / (times[tokens + 1] - times[1]), "unit": "tokens/s", "better": "higher",
            "note": f"transformers {transformers.__version__}, generate, SDPA, no statistics; one run"}


def statistics(options, width, kind):
    import torch

    tokens, vocabulary, columns = (40, 997, 32) if options.small else (8192, 151936, width)
    chunk = min(tokens, max(1, (8 << 30) // (vocabulary * 4)))
    gradient = kind == "gradient"
    hidden = torch.randn(tokens, columns, device=options.device, dtype=torch.bfloat16, requires_grad=gradient)
    head = torch.randn(vocabulary, columns, device=options.device, dtype=torch.bfloat16).mul_(0.05)
    head.requires_grad_(gradient)
    targets = torch.randint(0, vocabulary, (tokens,), device=options.device)

    def work():
        with torch.set_grad_enabled(gradient):
            for first in range(0, tokens, chunk):
                logits = (hidden[first : first + chunk] @ head.T).float()
                log_p = logits.log_softmax(-1)
                logprob = log_p.gather(1, targets[first : first + chunk, None]).squeeze(1)
                entropy = -(log_p.exp() * log_p).sum(-1)
                if gradient:
                    (entropy * 0.1 - logprob).sum().backward()
        hidden.grad = head.grad = None

    seconds = best_of_three(options.device, work)
    return {"value": tokens / seconds, "unit": "tokens/s", "better": "higher",
            "note": f"PyTorch {torch.__version__}, logits of {chunk} tokens materialised and rounded to bfloat16 first"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cell", nargs="?")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    if options.cell is None:
        print("\n".join(cells()))
        return
    if options.cell not in cells():
        parser.error(f"there is no cell {options.cell}")
    words = options.cell.split("_")
    if words[1] == "graph":
        row, peer_of = graph(options), "operator_call"
    elif words[1] == "decode":
        row, peer_of = decode(options, words[2], int(words[3])), options.cell.removeprefix("peer_")
    else:
        row, peer_of = statistics(options, int(words[2]), words[3]), options.cell.removeprefix("peer_")
    print(json.dumps({"cell": options.cell, "peer_of": peer_of, **row}))


if __name__ == "__main__":
    main()
