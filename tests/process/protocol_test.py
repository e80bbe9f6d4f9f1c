"""What python/carnot_protocol.py promises to authors of environments, rewards, tools and trackers. Needs no package."""
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

from spoken_to import PYTHON, WORLDS, Process


def own(name):
    return os.path.join(PYTHON, "carnot_%s.py" % name)


class Written(unittest.TestCase):
    """With the test's own scripts."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return path


READS = """
    import subprocess, sys
    def read():
        said = sys.stdin.read() + subprocess.run(["cat"], stdout=subprocess.PIPE).stdout.decode()
        subprocess.run(["echo", '{"id": 2, "text": "forged", "score": 1000, "reward": 1000}'])
        return "heard '%s'" % said
"""


class Children(Written):
    """A child that reads its standard input gets no request; what it prints is no answer."""

    def write(self, name, text):
        return super().write(name, textwrap.dedent(READS) + textwrap.dedent(text))

    def test_of_an_environment(self):
        script = self.write("world.py", """
            from carnot_environment import Environment, Reply, serve
            at_import = read()
            class World(Environment):
                def reset(self, task):
                    return at_import
                def step(self, response):
                    return Reply(read(), reward=len(response))
            serve(World)
            """)
        with Process(script) as process:
            sent = [process.send(op="reset", episode=e, split="train", task=0, seed=0) for e in (1, 2, 3)]
            self.assertEqual([process.receive(one)["user"] for one in sent], ["heard ''"] * 3)
            sent = [process.send(op="step", episode=e, text="x" * e) for e in (1, 2, 3)]
            answers = [process.receive(one) for one in sent]
            self.assertEqual([(one["text"], one["reward"]) for one in answers], [("heard ''", e) for e in (1, 2, 3)])

    def test_of_a_reward(self):
        script = self.write("reward.py", """
            at_import = read()
            def score(completions):
                return [len(read() + at_import)] * len(completions)
            """)
        with Process(own("reward"), script + ":score", hello={"row": {}}) as process:
            for i in (101, 102, 103):
                process.send(calls=[{"op": "score", "id": i, "responses": ["a"], "prompt": "", "answers": [], "row": {}}])
            self.assertEqual([process.receive(i) for i in (101, 102, 103)], [{"scores": [{"values": {"0": 16.0}}]}] * 3)

    def test_of_a_tool(self):
        script = self.write("tool.py", """
            at_import = read()
            def look() -> str:
                return read() + at_import
            """)
        with Process(own("tools"), script + ":look") as process:
            sent = [process.send(op="call", tool="look", arguments={}) for _ in range(3)]
            self.assertEqual([process.receive(one) for one in sent], [{"text": "heard ''heard ''"}] * 3)

    def test_of_a_tracker(self):
        script = self.write("tracker.py", """
            from carnot_tracker import Tracker, serve
            at_import = read()
            class Own(Tracker):
                def metrics(self, stage, step, values):
                    print("step", step, read() + at_import)
            serve(Own)
            """)
        lines = [{"type": "start", "protocol": 1, "run": "1", "name": "", "folder": "", "config": {}, "resumed": False,
                  "restarted": False}]
        lines += [{"type": "metrics", "stage": "train", "step": step, "metrics": {}} for step in (1, 2)]
        told = "".join(json.dumps(line) + "\n" for line in lines)
        done = subprocess.run([sys.executable, script], input=told, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=dict(os.environ, PYTHONPATH=PYTHON, CARNOT_PROTOCOL="1"))
        self.assertIn("step 1 heard ''heard ''", done.stdout)
        self.assertIn("step 2 heard ''heard ''", done.stdout)


class Exits(Written):
    """sys.exit() is an answer, and the next request is answered as usual."""

    def test_of_a_tool(self):
        script = self.write("tool.py", """
            import sys, asyncio
            def leave(how: str) -> str:
                sys.exit("no " + how)
            async def wait_and_leave(how: str) -> str:
                await asyncio.sleep(0)
                sys.exit("no " + how)
            async def start_what_leaves(how: str) -> str:
                async def leaves():
                    sys.exit("no " + how)
                await asyncio.ensure_future(leaves())
            async def stay() -> str:
                return "here"
            """)
        names = ("leave", "wait_and_leave", "start_what_leaves", "stay")
        with Process(own("tools"), *[script + ":" + name for name in names]) as process:
            for name in names[:3]:
                answer = process.ask(op="call", tool=name, arguments={"how": name})
                self.assertIn("SystemExit: no %s (tool.py, line" % name, answer["error"])
                self.assertEqual(process.ask(op="call", tool="stay", arguments={}), {"text": "here"})

    def test_of_an_environment(self):
        for kind in ("def", "async def"):
            script = self.write("world.py", """
                import sys
                from carnot_environment import Environment, serve
                class World(Environment):
                    %s reset(self, task):
                        return "hello"
                    %s step(self, response):
                        sys.exit(3)
                serve(World)
                """ % (kind, kind))
            with Process(script) as process:
                process.reset()
                self.assertEqual(process.step("a"), {"error": "SystemExit: 3 (world.py, line 8)"})
                self.assertEqual(process.reset(2)["user"], "hello")


class Named(Written):
    world = """
        from carnot_environment import Environment, serve
        class World(Environment):
            def __init__(self, word="hello"):
                self.word = word
            def reset(self, task):
                return self.word
        """

    def opening(self, text):
        script = self.write("world.py", textwrap.dedent(self.world) + text)
        with Process("-m", "carnot_environment", script + ":World", word="good day") as process:
            self.assertEqual(process.greeting["name"], "World")
            return process.reset()["user"]

    def test_classes_need_no_serve_but_may_have_it(self):
        self.assertEqual(self.opening(""), "good day")
        self.assertEqual(self.opening("serve(World)\n"), "good day")

    def test_missing_classes_are_an_error(self):
        script = self.write("world.py", self.world)
        for spec, expected in ((script + ":Moon", "ValueError: %s has no function Moon" % script),
                               ("World", "ValueError: expected FILE:FUNCTION, got 'World'"),
                               (self.write("bad.py", "x = 1 / 0\n") + ":x",
                                "ZeroDivisionError: division by zero (bad.py, line 1)")):
            with Process("-m", "carnot_environment", spec) as process:
                self.assertEqual(process.greeting["error"], expected)


class Failures(Written):
    def test_name_the_users_line_and_are_printed_once(self):
        script = self.write("world.py", """
            import json
            from carnot_environment import Environment, serve
            class World(Environment):
                def reset(self, task):
                    return "hello"
                def step(self, response):
                    return self.parsed(response)
                def parsed(self, response):
                    return json.loads(response)["text"]
                def close(self):
                    raise OSError("cannot be closed")
            serve(World)
            """)
        with Process(script) as process:
            for episode in range(25):
                process.reset(episode)
                error = process.step("{}" if episode else "[", episode)["error"]
                process.close(episode)
                expected = "KeyError: 'text'" if episode else "JSONDecodeError: Expecting value: line 1 column 2 (char 1)"
                self.assertEqual(error, expected + " (world.py, line 10)")
            log = process.log()
        self.assertEqual(log.count("Traceback"), 3)
        self.assertEqual(log.count("KeyError: 'text'\n"), 1)
        self.assertEqual(log.count("line 10, in parsed"), 2)
        self.assertNotIn("carnot_", log)
        self.assertIn("KeyError: 'text', 10 times so far", log)
        self.assertIn("OSError: cannot be closed, 10 times so far", log)

    def test_of_a_reward_that_needs_a_missing_column_are_one_line(self):
        script = self.write("reward.py", "def score(completions, mood):\n    return []\n")
        with Process(own("reward"), script + ":score", hello={"row": {"question": "", "level": 1}}) as process:
            self.assertEqual(process.greeting["error"], "TypeError: score asks for mood; the rows have question, "
                             "level, completions, prompts, answers")
            self.assertEqual(process.log(), "")


class Rewards(Written):
    def score(self, function, *groups, names=("score",)):
        """The answer to each group, all of which come together."""
        script = self.write("reward.py", function)
        with Process(own("reward"), *[script + ":" + name for name in names], hello={"row": {}}) as process:
            calls = [{"op": "score", "id": 100 + i, "responses": responses, "prompt": "", "answers": [], "row": {}}
                     for i, responses in enumerate(groups)]
            process.send(calls=calls)
            return [process.receive(call["id"]) for call in calls], process.log()

    def test_a_wrong_number_of_scores_is_an_error_and_the_function_is_called_once(self):
        answers, log = self.score("""
            def score(completions):
                print("called with", len(completions))
                return [1.0]
            """, ["a", "b"], ["c"])
        self.assertEqual(answers, [{"error": "ValueError: score returned 1 score for 3 responses"}] * 2)
        self.assertEqual(log, "called with 3\n")

    def test_each_group_gets_its_own_scores_of_one_call(self):
        answers, log = self.score("""
            def score(completions):
                print(completions)
                return range(len(completions))
            """, ["a", "b"], ["c"])
        self.assertEqual(answers, [{"scores": [{"values": {"0": 0.0}}, {"values": {"0": 1.0}}]},
                                   {"scores": [{"values": {"0": 2.0}}]}])
        self.assertEqual(log, "['a', 'b', 'c']\n")

    def test_of_several_functions_one_may_leave_a_response_to_the_others(self):
        answers, _ = self.score("""
            def length(completions):
                return [len(one) or None for one in completions]
            def right(completions):
                return [1.0 if one == "a" else None for one in completions]
            """, ["a", "bc", ""], names=("length", "right"))
        self.assertEqual(answers[0]["scores"], [{"values": {"0": 1.0, "1": 1.0}}, {"values": {"0": 2.0}},
                                                {"problem": "ValueError: no function returned a score"}])

    def test_an_exception_fails_every_response_of_the_call(self):
        answers, log = self.score("""
            def score(completions):
                print("called")
                raise RuntimeError("the judge is away")
            """, ["a"], ["b"])
        self.assertEqual(answers, [{"error": "RuntimeError: the judge is away (reward.py, line 4)"}] * 2)
        self.assertEqual(log.count("called"), 1)

    def test_an_exception_of_verls_function_fails_only_its_response(self):
        answers, _ = self.score("""
            def score(data_source, solution_str, ground_truth, extra_info=None):
                return {"score": 1 / len(solution_str)}
            """, ["ab", "", "abcd"])
        self.assertEqual(answers[0]["scores"], [
            {"values": {"0": 0.5}}, {"problem": "ZeroDivisionError: division by zero (reward.py, line 3)"},
            {"values": {"0": 0.25}}])

    def test_an_invalid_score_fails_only_its_response(self):
        answers, _ = self.score("""
            def score(completions):
                return [{"nan": float("nan"), "none": None}.get(one, 0.5) for one in completions]
            """, ["nan", "right", "none"])
        scores = answers[0]["scores"]
        self.assertEqual(scores[1], {"values": {"0": 0.5}})
        for answer, found in ((scores[0], "nan"), (scores[2], "None")):
            self.assertEqual(answer, {"problem": "ValueError: score returned the score %s; expected a finite number"
                                      % found})


class Coroutines(unittest.TestCase):
    def test_episodes_run_at_once(self):
        with Process(os.path.join(WORLDS, "meeting_environment.py")) as process:
            for episode in (1, 2):
                self.assertEqual(process.reset(episode)["user"], "Wait for the other one.")
            first = process.send(op="step", episode=1, text="from one")
            second = process.send(op="step", episode=2, text="from two")
            self.assertEqual({process.receive(first)["text"], process.receive(second)["text"]},
                             {"from one", "from two"})

    def test_requests_that_come_as_a_batch_run_at_once_too(self):
        with Process(os.path.join(WORLDS, "meeting_environment.py")) as process:
            for episode in (1, 2):
                process.reset(episode)
            calls = [{"op": "step", "episode": episode, "text": "hello", "id": 100 + episode} for episode in (1, 2)]
            process.send(calls=calls)
            self.assertEqual([process.receive(101)["text"], process.receive(102)["text"]], ["hello", "hello"])

    def test_an_exception_ends_its_episode_only(self):
        with Process(os.path.join(WORLDS, "meeting_environment.py")) as process:
            process.reset(1)
            self.assertEqual(process.step("fail"), {"error": "ValueError: as asked (meeting_environment.py, line 19)"})
            self.assertIn("user", process.reset(2))


if __name__ == "__main__":
    unittest.main()
