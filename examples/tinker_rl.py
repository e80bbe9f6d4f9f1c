"""Reinforcement learning through Tinker's API, against a server of your own.

    carnot serve --model .cache/smollm2 --tinker --port 8000
    pip install tinker==0.38.0
    python3 examples/tinker_rl.py http://127.0.0.1:8000 .cache/smollm2

The client is the unmodified package. Groups of completions are sampled from the policy of the moment, scored, and
trained on with the loss `importance_sampling`; an advantage is a score minus its group's mean.
"""
import random
import re
import sys

import tinker
from tinker import types

KEY = "tml-local"  # the client wants a key of this form; the server checks it if it has --api-key-env


def datum_of(prompt, sequence, advantage):
    """One completion; tokens of the prompt have no advantage."""
    tokens = prompt + list(sequence.tokens)
    known = [0.0] * (len(prompt) - 1)
    columns = {"logprobs": known + list(sequence.logprobs), "advantages": known + [advantage] * len(sequence.tokens)}
    inputs = {name: types.TensorData(data=values, dtype="float32", shape=[len(values)])
              for name, values in columns.items()}
    inputs["target_tokens"] = types.TensorData(data=tokens[1:], dtype="int64", shape=[len(tokens) - 1])
    return types.Datum(model_input=types.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs)


def sample_groups(sampler, prompts, group_size, max_tokens, seed):
    """All at once, so that the server can batch them; the seeds make the run repeatable."""
    futures = [sampler.sample(types.ModelInput.from_ints(prompt), group_size,
                              types.SamplingParams(max_tokens=max_tokens, temperature=1.0, seed=seed + i))
               for i, prompt in enumerate(prompts)]
    return [future.result().sequences for future in futures]


def train(training, steps, next_task, group_size=8, groups=8, max_tokens=8, learning_rate=1e-3):
    """next_task() -> (token ids of a prompt, function from a sequence to its score). Yields each step's mean score."""
    for step in range(steps):
        tasks = [next_task() for _ in range(groups)]
        sampler = training.save_weights_and_get_sampling_client().result()
        data, scores = [], []
        sampled = sample_groups(sampler, [prompt for prompt, _ in tasks], group_size, max_tokens, seed=step * groups)
        for (prompt, score), group in zip(tasks, sampled):
            of_group = [score(sequence) for sequence in group]
            mean = sum(of_group) / len(of_group)
            data += [datum_of(prompt, sequence, s - mean) for sequence, s in zip(group, of_group) if s != mean]
            scores += of_group
        if data:
            done = training.forward_backward(data, "importance_sampling")
            training.optim_step(types.AdamParams(learning_rate=learning_rate)).result()
            done.result()
        yield sum(scores) / len(scores)


def sums(tokenizer, seed=0):
    """Tasks: sums of two digits, as a continuation."""
    draw = random.Random(seed)

    def next_task():
        a, b = draw.randint(1, 9), draw.randint(1, 9)
        text = f"2 + 2 = 4\n5 + 1 = 6\n{a} + {b} ="

        def score(sequence):
            found = re.match(r"\s*(\d+)\s*(\n|$)", tokenizer.decode(sequence.tokens))
            return float(found is not None and int(found.group(1)) == a + b)

        return tokenizer.encode(text), score

    return next_task


def main():
    url, model = sys.argv[1:3]
    service = tinker.ServiceClient(base_url=url, api_key=KEY)
    training = service.create_lora_training_client(base_model=model, rank=8, seed=0).result()
    for step, mean in enumerate(train(training, 12, sums(training.get_tokenizer()))):
        print(f"step {step + 1}  score {mean:.2f}", flush=True)
    print("saved as", training.save_state("final").result().path)


if __name__ == "__main__":
    main()
