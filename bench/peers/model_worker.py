#!/usr/bin/env python3
"""A peer's side of bench/peers/models.py: answers the requests of bench/model_requests.cpp with another library.

    bench/peers/model_worker.py transformers FOLDER      a Hugging Face folder
    bench/peers/model_worker.py llama.cpp FOLDER         the same model in FOLDER.gguf

Reads a JSON object per line and answers each with one, until the input ends. Two settings that the requests of Carnot's
program do not have: `attention` (eager or sdpa) and `sequences`, how many of them one pass of training pads.
"""
import concurrent.futures
import ctypes
import json
import os
import pathlib
import sys
import threading
import time

THREADS = int(os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count())))


def random_tokens(generator, count, vocabulary):
    return generator.integers(0, vocabulary, count)


# ---- memory -------------------------------------------------------------------------------------------------------


def peak_mebibytes():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0


def forget_peak():
    pathlib.Path("/proc/self/clear_refs").write_text("5")


# ---- time ---------------------------------------------------------------------------------------------------------


class Clock:
    """Adds the wall and processor time between two calls of note() to an answer."""

    def __init__(self):
        self.answer, self.last = {}, self.now()

    @staticmethod
    def now():
        return time.perf_counter(), time.process_time()

    def note(self, prefix="", now=None):
        now = now or self.now()
        for key, end, begin in zip(("seconds", "processor_seconds"), now, self.last):
            self.answer[prefix + key] = end - begin
        self.last = now
        return self.answer


# ---- transformers -------------------------------------------------------------------------------------------------


class Transformers:
    def __init__(self, folder):
        import numpy
        import torch
        import transformers

        torch.set_num_threads(THREADS)
        transformers.logging.set_verbosity_error()
        self.torch, self.numpy, self.transformers = torch, numpy, transformers
        self.folder = folder
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
        self.model.generation_config = transformers.GenerationConfig()
        self.about = {"version": f"torch {torch.__version__}, transformers {transformers.__version__}"}

    def choose_attention(self, request):
        self.model.set_attn_implementation(request.get("attention", "eager"))

    def tokens(self, seed, *shape):
        drawn = self.numpy.random.default_rng(seed).integers(0, self.model.config.vocab_size, shape)
        return self.torch.tensor(drawn)

    def log_probs(self, request):
        """With "float32", the reference: the same weights, computed in float32."""
        torch, model = self.torch, self.model
        if request.get("float32"):
            model = self.transformers.AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32)
        ids = torch.tensor([request["tokens"]])
        with torch.inference_mode():
            log_p = model(input_ids=ids).logits[0, :-1].float().log_softmax(-1)
        return {"log_prob": log_p.gather(1, ids[0, 1:, None])[:, 0].tolist(),
                "entropy": (-(log_p.exp() * log_p).sum(-1)).tolist()}

    def generate(self, ids, tokens, sequences=1):
        """The time of each new token."""
        times = []

        def note_time(input_ids, scores, **kwargs):
            times.append(Clock.now())
            return self.torch.zeros(input_ids.shape[0], dtype=self.torch.bool)

        with self.torch.inference_mode():
            self.model.generate(
                input_ids=ids, attention_mask=self.torch.ones_like(ids), do_sample=True, temperature=1.0, top_k=0,
                top_p=1.0, num_return_sequences=sequences, max_new_tokens=tokens, pad_token_id=0,
                stopping_criteria=self.transformers.StoppingCriteriaList([note_time]))
        return times

    def decode(self, request):
        self.choose_attention(request)
        self.model.eval()
        ids, clock = self.tokens(1, request["batch"], request["prompt"]), Clock()
        times = self.generate(ids, request["tokens"] + 1)
        clock.note("prefill_", times[0])
        return clock.note("decode_", times[-1])

    def answers(self, request):
        self.choose_attention(request)
        self.model.eval()
        ids, clock = self.tokens(2, 1, request["prompt"]), Clock()
        self.generate(ids, request["tokens"], request["answers"])
        return clock.note()

    def loss(self, lengths, counted):
        torch = self.torch
        longest = max(lengths)
        ids = self.tokens(3, len(lengths), longest)
        present = torch.zeros_like(ids)
        counts = torch.zeros_like(ids, dtype=torch.bool)
        for i, n in enumerate(lengths):
            present[i, :n] = 1
            counts[i, n - int(counted * n) : n] = True
        mask = present if min(lengths) < longest else None
        hidden = self.model.model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
        log_p = self.model.lm_head(hidden[counts]).float().log_softmax(-1)
        log_prob = log_p.gather(1, ids[counts][:, None])[:, 0]
        entropy = -(log_p.exp() * log_p).sum(-1)
        return (0.01 * entropy - log_prob).sum()

    def train(self, request):
        self.choose_attention(request)
        self.model.train()
        lengths, chunk = request["lengths"], request["sequences"]
        clock = Clock()
        for first in range(0, len(lengths), chunk):
            self.loss(lengths[first : first + chunk], request["counted"]).backward()
        clock.note()
        self.model.zero_grad(set_to_none=True)
        return clock.answer

    def statistics(self, request):
        """The logits of `chunk` tokens at a time, materialised in float32; the clamped entropy as AEnt's published code
        computes it: the smallest logits by topk, masked, and the softmax of what is left."""
        torch = self.torch
        gradient, clamp, chunk = request["gradient"], request["clamp"], request.get("chunk", 256)
        head = self.model.lm_head.weight.detach().requires_grad_(gradient)
        hidden = torch.randn(request["tokens"], head.shape[1]).bfloat16().requires_grad_(gradient)
        targets = self.tokens(4, request["tokens"])
        clock = Clock()
        with torch.set_grad_enabled(gradient):
            for first in range(0, request["tokens"], chunk):
                logits = (hidden[first : first + chunk] @ head.T).float()
                logsumexp = logits.logsumexp(-1)
                log_p = logits - logsumexp[:, None]
                log_prob = log_p.gather(1, targets[first : first + chunk, None])[:, 0]
                entropy = -(log_p.exp() * log_p).sum(-1)
                loss = entropy * 0.1 - log_prob + logsumexp * 0.01
                if clamp > 0:
                    with torch.no_grad():
                        left_out = logits.topk(int(clamp * logits.shape[1]), dim=-1, largest=False).indices
                        mask = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, left_out, True)
                    kept = logits.masked_fill(mask, float("-inf")).log_softmax(-1)
                    loss = loss - 0.1 * (kept.exp() * kept.masked_fill(mask, 0)).sum(-1)
                if gradient:
                    loss.sum().backward()
        return clock.note()

    def product(self, request):
        torch = self.torch
        a = torch.randn(request["rows"], request["depth"])
        weights = torch.randn(request["columns"], request["depth"])
        out = torch.empty(request["rows"], request["columns"])
        best = float("inf")
        with torch.inference_mode():
            for _ in range(5):
                calls, begin = 0, time.perf_counter()
                while calls == 0 or time.perf_counter() - begin < 0.2:
                    torch.mm(a, weights.T, out=out)
                    calls += 1
                best = min(best, (time.perf_counter() - begin) / calls)
        return {"seconds": best}


# ---- llama.cpp ----------------------------------------------------------------------------------------------------


class LlamaCpp:
    PART = 256  # of the vocabulary, for sampling

    def __init__(self, folder):
        import llama_cpp
        import numpy

        self.cpp, self.numpy = llama_cpp, numpy
        llama_cpp.llama_backend_init()
        self.silence = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.silence, ctypes.c_void_p(0))
        self.model = llama_cpp.llama_model_load_from_file(
            os.fsencode(f"{folder}.gguf"), llama_cpp.llama_model_default_params())
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.generator = numpy.random.default_rng(5)
        self.parts = numpy.arange(0, self.vocabulary, self.PART)
        self.pool, self.of_thread = concurrent.futures.ThreadPoolExecutor(THREADS), threading.local()
        info = llama_cpp.llama_print_system_info().decode()
        self.about = {"version": f"llama-cpp-python {llama_cpp.__version__}", "system": info}

    def context(self, sequences, tokens, shared=False):
        """For `tokens` tokens of each sequence, or, `shared`, of all together."""
        parameters = self.cpp.llama_context_default_params()
        parameters.n_seq_max = sequences
        parameters.n_ctx = (1 if shared else sequences) * ((tokens + 255) // 256 * 256)
        parameters.n_batch = parameters.n_ctx
        parameters.n_ubatch = 512
        parameters.n_threads = parameters.n_threads_batch = THREADS
        parameters.kv_unified = shared
        return self.cpp.llama_init_from_model(self.model, parameters)

    def run(self, context, rows):
        """rows: (token, position, sequence, whether its logits are wanted)."""
        batch = self.cpp.llama_batch_init(len(rows), 0, 1)
        for i, (token, position, sequence, wanted) in enumerate(rows):
            batch.token[i], batch.pos[i], batch.logits[i] = int(token), position, wanted
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence
        batch.n_tokens = len(rows)
        status = self.cpp.llama_decode(context, batch)
        self.cpp.llama_batch_free(batch)
        if status != 0:
            raise RuntimeError(f"llama_decode ended with {status}")

    def logits(self, context, row):
        address = self.cpp.llama_get_logits_ith(context, row)
        return self.numpy.ctypeslib.as_array(address, (self.vocabulary,))

    def sample(self, logits, drawn):
        """At temperature 1 by a number in [0, 1), in two stages: a part of the vocabulary, then a token of it."""
        numpy = self.numpy
        if not hasattr(self.of_thread, "weights"):
            self.of_thread.weights = numpy.empty(self.vocabulary, numpy.float32)
        weights = self.of_thread.weights
        numpy.subtract(logits, logits.max(), out=weights)
        numpy.exp(weights, out=weights)
        sums = numpy.add.reduceat(weights, self.parts).cumsum()
        drawn *= sums[-1]
        part = min(int(numpy.searchsorted(sums, drawn, side="right")), len(sums) - 1)
        begin = int(self.parts[part])
        inside = weights[begin : begin + self.PART].cumsum()
        left = drawn - (sums[part - 1] if part > 0 else 0)
        return begin + min(int(numpy.searchsorted(inside, left, side="right")), len(inside) - 1)

    def sample_rows(self, context, rows):
        """A token of each row, on all threads. llama.cpp's own sampler takes longer."""
        logits = [self.logits(context, row) for row in rows]
        return list(self.pool.map(self.sample, logits, self.generator.random(len(rows))))

    def log_probs(self, request):
        numpy, tokens = self.numpy, request["tokens"]
        context = self.context(1, len(tokens))
        self.run(context, [(token, i, 0, True) for i, token in enumerate(tokens)])
        log_probs, entropies = [], []
        for i in range(len(tokens) - 1):
            logits = self.logits(context, i).astype(numpy.float64)
            log_p = logits - logits.max() - numpy.log(numpy.exp(logits - logits.max()).sum())
            log_probs.append(float(log_p[tokens[i + 1]]))
            entropies.append(float(-(numpy.exp(log_p) * log_p).sum()))
        self.cpp.llama_free(context)
        return {"log_prob": log_probs, "entropy": entropies}

    def sample_more(self, context, sequences, position, tokens):
        """`tokens` tokens of all sequences, whose logits are the last run's."""
        for n in range(tokens):
            drawn = self.sample_rows(context, range(sequences))
            if n + 1 < tokens:
                self.run(context, [(token, position + n, s, True) for s, token in enumerate(drawn)])

    def decode(self, request):
        batch, prompt, tokens = request["batch"], request["prompt"], request["tokens"]
        context = self.context(batch, prompt + tokens + 1)
        ids = random_tokens(self.generator, (batch, prompt), self.vocabulary)
        first, clock = [], Clock()
        for b in range(batch):
            self.run(context, [(token, i, b, i + 1 == prompt) for i, token in enumerate(ids[b])])
            first += self.sample_rows(context, [prompt - 1])
        clock.note("prefill_")
        self.run(context, [(token, prompt, b, True) for b, token in enumerate(first)])
        self.sample_more(context, batch, prompt + 1, tokens)
        clock.note("decode_")
        self.cpp.llama_free(context)
        return clock.answer

    def answers(self, request):
        """The prompt is computed once, and its cells of the cache belong to all sequences."""
        prompt, answers, tokens = request["prompt"], request["answers"], request["tokens"]
        context = self.context(answers, prompt + answers * tokens, shared=True)
        ids = random_tokens(self.generator, prompt, self.vocabulary)
        clock = Clock()
        self.run(context, [(token, i, 0, i + 1 == prompt) for i, token in enumerate(ids)])
        memory = self.cpp.llama_get_memory(context)
        for s in range(1, answers):
            self.cpp.llama_memory_seq_cp(memory, 0, s, -1, -1)
        first = self.sample_rows(context, [prompt - 1] * answers)
        self.run(context, [(token, prompt, s, True) for s, token in enumerate(first)])
        self.sample_more(context, answers, prompt + 1, tokens - 1)
        clock.note()
        self.cpp.llama_free(context)
        return clock.answer


# ---- requests -----------------------------------------------------------------------------------------------------


def serve(worker):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print
    print(json.dumps(worker.about), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        forget_peak()
        try:
            answer = getattr(worker, request["do"])(request)
        except Exception as error:  # the next request may succeed
            answer = {"error": f"{type(error).__name__}: {error}"}
        answer["peak_mebibytes"] = peak_mebibytes()
        print(json.dumps(answer), file=answers, flush=True)


def main(arguments):
    if len(arguments) == 2 and arguments[0] in ("transformers", "llama.cpp"):
        serve((Transformers if arguments[0] == "transformers" else LlamaCpp)(arguments[1]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
