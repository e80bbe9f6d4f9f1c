"""python/carnot_tracker.py, and the trackers in python/, each with the package it is for, offline, driven as Carnot drives it.

    tools/install_test_packages.sh
    .cache/test_packages/adapters/bin/python tests/process/trackers_test.py
"""
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")
sys.path.insert(0, PYTHON)


def start(**changes):
    return dict({"type": "start", "protocol": 1, "run": "0123456789abcdef", "name": "quick", "folder": "/runs/quick",
                 "resumed": False, "restarted": False,
                 "config": {"seed": 3, "train.learning_rate": 3e-4, "method.name": "grpo + aem"}}, **changes)


def stage(name, step, steps):
    return {"type": "stage", "stage": name, "step": step, "steps": steps}


def metrics(step, stage="train", **values):
    return {"type": "metrics", "stage": stage, "step": step, "metrics": values}


def transcript(step, text="</script>\x1b[2J \u4e16"):
    return {"type": "transcript", "stage": "train", "step": step, "uid": "train_1", "traj_id": "train_1.0",
            "outcome": "finished", "success": True, "score": 1.0, "turns": 2, "gts": ["a"], "measures": {}, "input": "q",
            "output": text}


END = {"type": "end", "status": "complete"}


def tell(script, messages, arguments=(), folder=None, tail="", **environment):
    """What the script prints, and its exit status."""
    lines = "".join(json.dumps(message) + "\n" for message in messages) + tail
    process = subprocess.run([sys.executable, script, *arguments], input=lines.encode(), cwd=folder,
                             env=dict(os.environ, PYTHONPATH=PYTHON, **environment), stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=300)
    return process.stdout.decode(errors="replace"), process.returncode


WRITER = """
from carnot_tracker import Tracker, serve

class Writer(Tracker):
    def __init__(self, colour="blue", **rest):
        print("made", colour, rest)
    def start(self, run):
        print("start", run.id, run.name, run.config["seed"], run.resumed, run.restarted)
    def stage(self, stage, step, steps):
        print("stage", stage, step, steps)
    def metrics(self, stage, step, values):
        if step == 2:
            raise RuntimeError("no connection")
        print("metrics", stage, step, values)
    def transcript(self, transcript):
        print("transcript", transcript["output"])
    def dropped(self, lines):
        print("dropped", lines)
    def end(self, status, message):
        print("end", status, message)

serve(Writer)
"""


class BaseTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.script = os.path.join(folder.name, "writer.py")
        with open(self.script, "w") as file:
            file.write(WRITER)

    def test_every_message_reaches_its_method_and_an_exception_costs_one_message(self):
        messages = [start(resumed=True), stage("train", 4, 9), metrics(1, loss=0.5, broken=None), metrics(2, loss=1),
                    {"type": "dropped", "lines": 7}, {"type": "of a later version"}, transcript(3, "so"), metrics(3, loss=2),
                    dict(END, status="failed", message="why")]
        out, status = tell(self.script, messages, ["colour=red", "depth=[1, 2]"])
        self.assertEqual(status, 0)
        lines = [line for line in out.splitlines() if line.split()[0] in
                 ("made", "start", "stage", "metrics", "dropped", "transcript", "end")]
        self.assertEqual(lines, ["made red {'depth': [1, 2]}", "start 0123456789abcdef quick 3 True False",
                                 "stage train 4 9", "metrics train 1 {'loss': 0.5}", "dropped 7", "transcript so",
                                 "metrics train 3 {'loss': 2}", "end failed why"])
        self.assertIn("RuntimeError: no connection", out)

    def test_a_run_that_was_killed_is_lost(self):
        out, status = tell(self.script, [start(), metrics(1, loss=1)], tail='{"type": "metrics", "st')
        self.assertEqual(status, 0)
        self.assertTrue(out.rstrip().endswith("end lost Carnot ended without a word"), out)

    def test_a_script_of_another_protocol_version_says_so(self):
        out, status = tell(self.script, [start(protocol=2)])
        self.assertNotEqual(status, 0)
        self.assertIn("Carnot speaks protocol 2 of trackers, this script 1", out)

    def test_arguments_without_a_name_are_refused(self):
        out, status = tell(self.script, [start()], ["red"])
        self.assertNotEqual(status, 0)
        self.assertIn("expected arguments such as project=agents, found 'red'", out)


class AdapterTest(unittest.TestCase):
    """A run of SFT and three steps; then the same run, continued after step 2."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def tell(self, script, arguments, **environment):
        first = [start(), stage("sft", 0, 50), metrics(50, "sft", **{"sft/loss": 0.2}), stage("train", 0, 5),
                 metrics(0, **{"val-core/quick/reward/mean@1": 0.25})]
        for step in (1, 2, 3):
            first += [transcript(step), metrics(step, **{"actor/entropy": 1 / step, "critic/score/mean": step / 4})]
        second = [start(resumed=True), stage("train", 2, 5), transcript(3), metrics(3, **{"actor/entropy": 0.5}),
                  metrics(4, **{"actor/entropy": 0.125}), END]
        for messages in (first + [dict(END, status="interrupted")], second):
            out, status = tell(os.path.join(PYTHON, script), messages, arguments, self.folder, **environment)
            self.assertEqual(status, 0, out)
            self.assertNotIn("Traceback", out)

    def test_wandb_writes_an_offline_run_with_the_runs_id(self):
        self.tell("wandb_tracker.py", ["project=agents", "mode=offline"], WANDB_SILENT="true",
                  WANDB_DIR=self.folder)
        files = sorted(glob.glob(os.path.join(self.folder, "wandb", "offline-run-*", "run-0123456789abcdef.wandb")))
        self.assertEqual(len(files), 2)
        history = []
        for file in files:
            history += wandb_history(file)
        steps = [(row["step"], row["actor/entropy"]) for row in history if "actor/entropy" in row]
        self.assertEqual(steps, [(1, 1.0), (2, 0.5), (3, 1 / 3), (3, 0.5), (4, 0.125)])
        self.assertIn((50, 0.2), [(row.get("sft/step"), row.get("sft/loss")) for row in history])
        self.assertEqual(sum(any(name.startswith("transcripts") for name in row) for row in history), 4)

    def test_mlflow_continues_the_run_that_has_the_id(self):
        uri = "sqlite:///" + os.path.join(self.folder, "mlflow.db")
        self.tell("mlflow_tracker.py", ["experiment=agents", "uri=" + uri])
        import mlflow
        mlflow.set_tracking_uri(uri)
        client = mlflow.MlflowClient()
        experiment = client.get_experiment_by_name("agents")
        runs = client.search_runs([experiment.experiment_id])
        self.assertEqual([run.data.tags["carnot_run"] for run in runs], ["0123456789abcdef"])
        run = runs[0]
        self.assertEqual(run.info.status, "FINISHED")
        self.assertEqual(run.info.run_name, "quick")
        self.assertEqual(run.data.params["train.learning_rate"], "0.0003")
        history = sorted((one.step, one.value) for one in client.get_metric_history(run.info.run_id, "actor/entropy"))
        self.assertEqual(history, [(1, 1.0), (2, 0.5), (3, 1 / 3), (3, 0.5), (4, 0.125)])
        self.assertEqual(run.data.metrics["val-core/quick/reward/mean_at_1"], 0.25)
        self.assertEqual(run.data.metrics["sft/loss"], 0.2)
        texts = [file.path for file in client.list_artifacts(run.info.run_id, "transcripts")]
        self.assertEqual(texts, ["transcripts/step_%d.jsonl" % step for step in (1, 2, 3)])

    def test_trackio_keeps_the_run_on_this_machine(self):
        self.tell("trackio_tracker.py", ["project=agents"], TRACKIO_DIR=self.folder, HF_HUB_OFFLINE="1")
        import sqlite3
        databases = glob.glob(os.path.join(self.folder, "**", "agents*.db"), recursive=True)
        self.assertEqual(len(databases), 1)
        rows = sqlite3.connect(databases[0]).execute("select run_name, step, metrics from metrics order by id").fetchall()
        self.assertEqual({row[0] for row in rows}, {"quick-0123456789abcdef"})
        values = [(step, json.loads(text)) for _, step, text in rows]
        entropies = [(step, value["actor/entropy"]) for step, value in values if "actor/entropy" in value]
        self.assertEqual(entropies, [(1, 1.0), (2, 0.5), (3, 1 / 3), (3, 0.5), (4, 0.125)])
        self.assertEqual(sum("transcripts" in value for _, value in values), 4)


def wandb_records(file):
    """An offline run's file: a log of LevelDB's format, blocks of 32 KiB after a header of 7 bytes."""
    with open(file, "rb") as opened:
        data = opened.read()
    at, record = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        size, kind = struct.unpack("<HB", data[at + 4:at + 7])  # after four bytes of checksum
        record += data[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""


def wandb_history(file):
    """Rows of metrics that an offline run's file holds."""
    from wandb.proto import wandb_internal_pb2
    rows = []
    for data in wandb_records(file):
        record = wandb_internal_pb2.Record.FromString(data)
        if record.WhichOneof("record_type") == "history":
            rows.append({item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item})
    return rows


if __name__ == "__main__":
    unittest.main()
