"""The unmodified package `tinker` against `carnot serve --tinker`: training, sampling, several clients, a server killed.

    python3 tinker_client_test.py CARNOT WORK_FOLDER PYTHON

PYTHON has the package (tools/install_test_packages.sh).
"""
import os
import shutil
import signal
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "examples"))

RECIPE = """
run_folder: {folder}/run
env: {{name: search_qa, train_worlds: 1, held_out_worlds: 1}}
model: {{hidden_size: 32, intermediate_size: 64, num_layers: 2, num_heads: 2, num_kv_heads: 1, head_dim: 16}}
sft: {{steps: 100, learning_rate: 3e-3, batch_tokens: 1024}}
rollout: {{group_size: 2}}
train: {{groups_per_step: 1}}
eval: {{tasks: 1}}
"""
KEY = "tml-secret"
TARGETS = set(range(300))


class Server:
    def __init__(self, carnot, folder):
        self.process = subprocess.Popen(
            [carnot, "serve", "--model", os.path.join(folder, "run"), "--name", "small", "--tinker", "--port", "0",
             "--weights", os.path.join(folder, "weights"), "--cache-tokens", "4096", "--api-key-env", "TINKER_TEST_KEY"],
            stdout=subprocess.PIPE, text=True, env=os.environ | {"TINKER_TEST_KEY": KEY})
        self.address = self.process.stdout.readline().strip()

    def end(self, how):
        self.process.send_signal(how)
        return self.process.wait()


def share_of_targets(sequence):
    return sum(token in TARGETS for token in sequence.tokens) / len(sequence.tokens)


def curve(service, seed):
    """Mean scores of a short training."""
    import tinker_rl
    training = service.create_lora_training_client(base_model="small", rank=4, seed=seed).result()
    tasks = lambda: ([3, 4, 5], share_of_targets)
    return training, list(tinker_rl.train(training, 8, tasks, group_size=16, groups=4, learning_rate=0.01))


def supervised(training, steps):
    """Losses of some steps on fixed data: a function of the adapter's seed alone."""
    from tinker import types
    data = [types.Datum(model_input=types.ModelInput.from_ints([i, i + 1, 7]),
                        loss_fn_inputs={"target_tokens": types.TensorData(data=[i + 1, 7, 9], dtype="int64", shape=[3])})
            for i in range(1, 9)]
    losses = []
    for _ in range(steps):
        done = training.forward_backward(data, "cross_entropy")
        training.optim_step(types.AdamParams(learning_rate=0.01)).result()
        losses.append(done.result().metrics["loss:sum"])
    return losses


def check_learning(service):
    _, scores = curve(service, 1)
    print("scores", " ".join(f"{score:.2f}" for score in scores))
    assert sum(scores[-3:]) / 3 > scores[0] + 0.3, scores


def check_two_clients(service):
    alone = [supervised(service.create_lora_training_client(base_model="small", rank=4, seed=seed).result(), 4)
             for seed in (1, 2)]
    assert alone[0] != alone[1] and alone[0][-1] < alone[0][0], alone
    trained = [service.create_lora_training_client(base_model="small", rank=4, seed=seed).result() for seed in (1, 2)]
    together = [None, None]

    def run(i):
        together[i] = supervised(trained[i], 4)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone, (together, alone)


def check_methods(service):
    """Two groups of a method of Carnot's, whose credit the server computes."""
    from tinker import types

    def number(value):
        return types.TensorData(data=[float(value)], dtype="float32", shape=[1])

    def column(values, dtype="float32"):
        return types.TensorData(data=values, dtype=dtype, shape=[len(values)])

    training = service.create_lora_training_client(base_model="small", rank=4, seed=4).result()
    data = [types.Datum(model_input=types.ModelInput.from_ints([1, 2, 3 + i]), loss_fn_inputs={
        "target_tokens": column([2, 3 + i, 9], "int64"), "mask": column([0.0, 1.0, 1.0]),
        "logprobs": column([0.0, -6.0, -6.0]), "group": number(i // 2), "score": number(i % 2)}) for i in range(4)]
    output = training.forward_backward(data, "grpo + aem", {"aem.lambda": 0.5, "filter.name": "none"}).result()
    assert output.loss_fn_outputs[0]["logprobs"].data[0] == 0 > output.loss_fn_outputs[0]["logprobs"].data[1], output
    assert "actor/ppo_kl:mean" in output.metrics, output.metrics
    assert training.optim_step(types.AdamParams(learning_rate=0.01)).result().metrics["grad_norm"] > 0


def check_answers(service):
    from tinker import types
    sampler = service.create_sampling_client(base_model="small").result()
    prompt = types.ModelInput.from_ints([3, 4, 5])
    greedy = types.SamplingParams(max_tokens=6, temperature=0, stop=[])
    first, second = (sampler.sample(prompt, 2, greedy, include_prompt_logprobs=True, topk_sample_logprobs=3).result()
                     for _ in range(2))
    tokens = list(first.sequences[0].tokens)
    assert len(tokens) == 6 and tokens == list(second.sequences[1].tokens), tokens
    assert first.sequences[0].topk_logprobs[0][0][0] == tokens[0]
    whole = types.ModelInput.from_ints([3, 4, 5] + tokens)
    scored = sampler.compute_logprobs(whole).result()
    assert scored[0] is None
    assert all(abs(a - b) < 1e-5 for a, b in zip(scored[3:], first.sequences[0].logprobs)), (scored, first)
    assert all(abs(a - b) < 1e-5 for a, b in zip(scored[1:3], first.prompt_logprobs[1:])), first.prompt_logprobs
    stopped = sampler.sample(prompt, 1, types.SamplingParams(max_tokens=6, temperature=0, stop=[tokens[2]])).result()
    at = tokens.index(tokens[2]) + 1
    assert list(stopped.sequences[0].tokens) == tokens[:at] and stopped.sequences[0].stop_reason == "stop"


def check_errors(service, address):
    import tinker
    from tinker import types
    training = service.create_lora_training_client(base_model="small", rank=4).result()
    data = [types.Datum(model_input=types.ModelInput.from_ints([1]), loss_fn_inputs={})]
    for loss, expected in (("ppo", "misses target_tokens"), ("reinforce", "expected one of cross_entropy")):
        try:
            training.forward_backward(data, loss).result()
            raise AssertionError("no error")
        except tinker.TinkerError as error:
            assert expected in str(error), error
    try:
        service.create_lora_training_client(base_model="large").result()
        raise AssertionError("no error")
    except tinker.TinkerError as error:
        assert "expected 'small', found 'large'" in str(error), error
    try:
        tinker.ServiceClient(base_url=address, api_key="tml-wrong").create_sampling_client(base_model="small").result()
        raise AssertionError("no error")
    except tinker.AuthenticationError as error:
        assert "X-API-Key" in str(error), error


def check_kill(carnot, folder, server):
    """What was acknowledged as saved is there after kill -9, and training continues from it bit for bit."""
    import tinker
    service = tinker.ServiceClient(base_url=server.address, api_key=KEY)
    training = service.create_lora_training_client(base_model="small", rank=4, seed=3).result()
    supervised(training, 3)
    path = training.save_state("kept").result().path
    sampling_path = training.save_weights_for_sampler("kept").result().path
    straight = supervised(training, 3)
    server.end(signal.SIGKILL)
    again = Server(carnot, folder)
    service = tinker.ServiceClient(base_url=again.address, api_key=KEY)
    resumed = service.create_training_client_from_state_with_optimizer(path).result()
    assert supervised(resumed, 3) == straight
    fresh = service.create_training_client_from_state(path).result()
    losses = supervised(fresh, 3)
    assert losses[0] == straight[0] and losses[2] != straight[2], (losses, straight)
    service.create_sampling_client(model_path=sampling_path).result()
    rest = tinker.RestClient(base_url=again.address, api_key=KEY)
    listed = rest.list_checkpoints(path.split("/")[2]).result()
    assert {one.checkpoint_id for one in listed.checkpoints} == {"weights/kept", "sampler_weights/kept"}, listed
    assert rest.get_weights_info_by_tinker_path(path).result().lora_rank == 4
    rest.delete_checkpoint_from_tinker_path(sampling_path).result()
    assert len(rest.list_checkpoints(path.split("/")[2]).result().checkpoints) == 1
    return again


def main():
    if len(sys.argv) == 4:  # again, where the package is
        return subprocess.run([sys.argv[3], __file__, *sys.argv[1:3]], check=False).returncode
    import tinker
    carnot, folder = sys.argv[1:3]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    recipe = os.path.join(folder, "recipe.yaml")
    with open(recipe, "w", encoding="utf-8") as file:
        file.write(RECIPE.format(folder=folder))
    subprocess.run([carnot, "sft", recipe], check=True, stdout=subprocess.DEVNULL)
    server = Server(carnot, folder)
    try:
        service = tinker.ServiceClient(base_url=server.address, api_key=KEY)
        check_answers(service)
        check_methods(service)
        check_two_clients(service)
        check_learning(service)
        check_errors(service, server.address)
        server = check_kill(carnot, folder, server)
    finally:
        status = server.end(signal.SIGTERM)
    assert status == 0, f"the server ended with status {status}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
