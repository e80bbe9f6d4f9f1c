#!/usr/bin/env python3
"""Records requests as the package tinker sends them, for tests/golden/tinker_messages.json.

Run from the repository root with:  pip install tinker==0.38.0
    python3 tools/golden/tinker_messages.py
"""

import json
import pathlib

from tinker import types
from tinker.proto.request_conv import forward_backward_request_to_proto
from tinker.types.forward_backward_input import ForwardBackwardInput
from tinker.types.forward_backward_request import ForwardBackwardRequest


def tensor(values, dtype):
    return types.TensorData(data=values, dtype=dtype, shape=[len(values)])


def datum(tokens, **inputs):
    kinds = {name: "int64" if name == "target_tokens" else "float32" for name in inputs}
    return types.Datum(model_input=types.ModelInput.from_ints(tokens),
                       loss_fn_inputs={name: tensor(values, kinds[name]) for name, values in inputs.items()})


CASES = [
    dict(model_id="a:train:0", seq_id=3, loss="cross_entropy", settings=None, forward_only=True,
         data=[dict(tokens=[1, 2, 70000], inputs=dict(target_tokens=[2, 70000, 5], weights=[0.0, 1.0, 0.5]))]),
    dict(model_id="b:train:12", seq_id=1, loss="ppo", forward_only=False,
         settings={"clip_low_threshold": 0.75, "note": "text"},
         data=[dict(tokens=[7], inputs=dict(target_tokens=[8], logprobs=[-1.25], advantages=[-2.0])),
               dict(tokens=[7, 9], inputs=dict(target_tokens=[9, 4], logprobs=[-0.5, -3.0], advantages=[0.25, 0.0]))]),
    dict(model_id="c", seq_id=2, loss="grpo + aem", settings={}, forward_only=False, data=[]),
]


def main():
    recorded = []
    for case in CASES:
        request = ForwardBackwardRequest(
            forward_backward_input=ForwardBackwardInput(
                data=[datum(one["tokens"], **one["inputs"]) for one in case["data"]],
                loss_fn=case["loss"], loss_fn_config=case["settings"]),
            model_id=case["model_id"], seq_id=case["seq_id"])
        message = forward_backward_request_to_proto(request)
        message.forward_only = case["forward_only"]
        recorded.append(case | {"bytes": message.SerializeToString(deterministic=True).hex()})
    pathlib.Path("tests/golden/tinker_messages.json").write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
