#!/usr/bin/env python3
"""Records rollouts as other systems write them, for tests/golden/imported_rollouts.

Run from the repository root, each with the Python that has the package:
    .cache/test_packages/trainers/bin/python tools/golden/imported_rollouts.py verl        # verl 0.9.1
    .cache/test_packages/trainers/bin/python tools/golden/imported_rollouts.py trl         # TRL 1.16.0
    .cache/test_packages/earlier_adapters/bin/python tools/golden/imported_rollouts.py verifiers   # 0.1.14
    python tools/golden/imported_rollouts.py inspect                                       # inspect-ai 0.3.285
TRL needs the model folder that tools/install_smollm2.sh makes: it trains a tiny model with its tokenizer.
"""

import json
import os
import pathlib
import sys
import tempfile
import types

FOLDER = pathlib.Path("tests/golden/imported_rollouts")
QUESTIONS = [("What is 2 + 3?", "5"), ("What is 4 * 3?", "12")]
ANSWERS = ["<think>I add.</think> 5", "It is 6.", "12", "I do not know."]


def verl():
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer

    with tempfile.TemporaryDirectory() as folder:
        RayPPOTrainer._write_generations(
            [f"system\nBe brief.\nuser\n{question}\nassistant\n" for question, _ in QUESTIONS for _ in range(2)], ANSWERS,
            [answer for _, answer in QUESTIONS for _ in range(2)], [1.0, 0.0, 1.0, 0.0],
            {"acc": [True, False, True, False], "pred": ["5", "6", "12", ""]}, folder, 7)
        return (pathlib.Path(folder) / "7.jsonl").read_text()


def trl():
    import pandas
    import torch
    from datasets import Dataset
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(".cache/smollm2")
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16,
                                         num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1))
    rows = Dataset.from_list([{"prompt": [{"role": "user", "content": question}], "truth": answer}
                              for question, answer in QUESTIONS])

    def short(completions, **_):
        return [1 / (1 + len(one[0]["content"])) for one in completions]

    def correct(completions, truth, **_):
        return [float(answer in one[0]["content"]) for one, answer in zip(completions, truth)]

    with tempfile.TemporaryDirectory() as folder:
        GRPOTrainer(model, [short, correct], processing_class=tokenizer, train_dataset=rows, args=GRPOConfig(
            folder, per_device_train_batch_size=4, num_generations=2, max_completion_length=6, max_steps=1, use_cpu=True,
            log_completions=True, logging_steps=1, report_to=[], bf16=False, save_strategy="no")).train()
        table = pandas.read_parquet(next(pathlib.Path(folder).glob("completions/*.parquet")))
        return table.to_json(orient="records", lines=True)


def verifiers():
    import http.server
    import threading

    import verifiers as vf
    from datasets import Dataset
    from verifiers.types import ClientConfig
    from verifiers.utils.save_utils import save_outputs

    said = iter(ANSWERS)

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": next(said)}}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def correct(completion, answer, **_):
        return float(answer in completion[-1]["content"])

    environment = vf.SingleTurnEnv(
        dataset=Dataset.from_list([{"question": question, "answer": answer} for question, answer in QUESTIONS]),
        system_prompt="Be brief.", rubric=vf.Rubric(funcs=[correct]))
    os.environ["NO_KEY"] = "none"
    client = ClientConfig(api_base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key_var="NO_KEY")
    results = environment.evaluate_sync(client, "m", num_examples=2, rollouts_per_example=2, max_concurrent=1)
    with tempfile.TemporaryDirectory() as folder:
        save_outputs(results["outputs"], pathlib.Path(folder))
        return (pathlib.Path(folder) / "results.jsonl").read_text()


def inspect():
    import tiktoken
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate, system_message, use_tools
    from inspect_ai.tool import tool

    # Its mock model counts tokens by an encoding that it would download.
    words = types.SimpleNamespace(encode=lambda text, **_: text.split(), encode_ordinary=str.split)
    tiktoken.get_encoding = tiktoken.encoding_for_model = lambda _: words

    @tool
    def add():
        async def execute(a: int, b: int):
            """Adds.

            Args:
                a: A number.
                b: Another.
            """
            return str(a + b)

        return execute

    outputs = [ModelOutput.for_tool_call("mockllm/model", "add", {"a": 2, "b": 3}),
               *(ModelOutput.from_content("mockllm/model", answer) for answer in ANSWERS)]
    task = Task(dataset=[Sample(input=question, target=answer, id=f"q{n}") for n, (question, answer) in enumerate(QUESTIONS)],
                solver=[system_message("Be brief."), use_tools(add()), generate()], scorer=includes(), epochs=2)
    with tempfile.TemporaryDirectory() as folder:
        eval(task, model=get_model("mockllm/model", custom_outputs=outputs), log_dir=folder, log_format="json",
             max_samples=1, display="none")
        log = json.loads(next(pathlib.Path(folder).glob("*.json")).read_text())
    kept = {key: log[key] for key in ("version", "status")}
    fields = ("id", "epoch", "input", "target", "messages", "scores", "error", "limit")
    kept["samples"] = [{key: sample[key] for key in fields if key in sample} for sample in log["samples"]]
    kept["samples"].append({**kept["samples"][0], "id": "failed", "error": {"message": "lost"}, "scores": {},
                            "messages": kept["samples"][0]["messages"][:2]})
    return json.dumps(kept, indent=1) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    name = sys.argv[1]
    (FOLDER / f"{name}.{'json' if name == 'inspect' else 'jsonl'}").write_text(globals()[name]())
