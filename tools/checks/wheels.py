#!/usr/bin/env python3
"""The built wheels as a user meets them: fresh virtual environments, torch from the index, no rights beyond a user's.

    tools/wheels.sh && tools/checks/wheels.py build/wheels/dist build/carnot

pip's own variables choose the index (PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu): by default torch is its
CUDA build, of several gigabytes. Run as root it becomes the user nobody for everything that it does with carnot-rl.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOBODY = 65534
SHOPPING = """
run_folder: runs/shopping
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
env: {name: process, command: [python3, -m, carnot_environment, "shopping:Shopping"]}
method: grpo
objective: {kl_coefficient: 0}
rollout: {group_size: 2}
train: {steps: 1, groups_per_step: 1}
eval: {tasks: 1}
"""
QUICKSTART = ["sft.steps=20", "train.steps=3", "train.groups_per_step=4", "eval.tasks=8"]


class User:
    """Runs programs in a folder of its own; as an ordinary user if `ordinary`."""

    def __init__(self, folder, ordinary):
        self.folder = pathlib.Path(folder)
        pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        self.settings = {"cwd": folder, "env": pip | {"HOME": folder, "PATH": os.defpath, "LANG": "C.UTF-8"}}
        if ordinary and os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            self.settings |= {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def run(self, *command, fails=False, stdin=subprocess.DEVNULL, **variables):
        settings = self.settings | {"env": self.settings["env"] | variables, "stdin": stdin}
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **settings)
        if (done.returncode != 0) != fails:
            sys.exit(f"wheels: {' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stderr if fails else done.stdout

    def environment(self, name, python, *packages):
        begin = time.monotonic()
        place = self.folder / name
        self.run(python, "-m", "venv", place)
        self.run(place / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
        say(f"pip installed {', '.join(pathlib.Path(p).name for p in packages)} in {time.monotonic() - begin:.0f} s")
        return place


def say(text):
    print(f"wheels: {text}", flush=True)


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def expect(condition, what):
    if not condition:
        sys.exit(f"wheels: {what}")


def check_program(user, wheel, built):
    venv = user.environment("program", "/usr/bin/python3", wheel)
    carnot = venv / "bin/carnot"
    expect(user.run(carnot, "--version") == output(built, "--version"), "carnot --version differs from the build's")
    begin = time.monotonic()
    user.run(carnot, "train", "recipes/quickstart.yaml", *QUICKSTART)
    say(f"the quickstart, shortened to three steps, ran in {time.monotonic() - begin:.0f} s")

    rollouts = sorted((user.folder / "runs/quickstart/rollouts").glob("step_*.jsonl"))
    expect(len(rollouts) == 3, f"expected the rollouts of three steps, found {rollouts}")
    for method in ("grpo", "gigpo", "grpo + aem"):
        ours = user.run(carnot, "credit", rollouts[-1], "--method", method)
        theirs = output(built, "credit", rollouts[-1], "--method", method)
        expect(ours and ours == theirs, f"credit of {method} differs from the build's")
    check_files(user, venv)
    return venv


def check_files(user, venv):
    """The small programs, the Python files and the manual page are found from where pip puts the program."""
    carnot = venv / "bin/carnot"
    (user.folder / "program.py").write_text("print(6 * 7)")
    with open(user.folder / "program.py") as program:
        expect(user.run(carnot, "tool", "python", stdin=program) == "42\n", "the sandbox did not answer 42")
    recipe = user.folder / "shopping.yaml"
    recipe.write_text(SHOPPING)
    user.run(carnot, "train", recipe)
    expect((user.folder / "runs/shopping/rollouts/step_1.jsonl").exists(), "the environment in Python had no rollouts")
    expect((venv / "share/man/man1/carnot.1").read_text().startswith(".TH"), "there is no manual page")


def check_launcher(user, wheel, venv):
    """What the launcher says where torch is missing or another, and a torch that is not beside the program."""
    bare = user.environment("bare", "/usr/bin/python3", "--no-deps", wheel)
    missing = user.run(bare / "bin/carnot", "--version", fails=True)
    expect("there is no torch" in missing and "pip install 'torch==" in missing, f"without torch: {missing}")

    other = user.folder / "other/torch"
    user.run("mkdir", "-p", other)
    for name, text in (("__init__.py", ""), ("version.py", "__version__ = '2.15.1+cpu'\n")):
        user.run("sh", "-c", f'printf "%s" "$1" > {other / name}', "sh", text)
    wrong = user.run(venv / "bin/carnot", "--version", fails=True, PYTHONPATH=str(other.parent))
    expect("torch 2.15.1+cpu is installed in" in wrong and "was built with torch 2." in wrong,
           f"next to another torch: {wrong}")

    elsewhere = next(venv.glob("lib/python3*/site-packages"))
    user.run(bare / "bin/carnot", "--version", PYTHONPATH=str(elsewhere))


def python_for(wheel):
    """An interpreter of the version that the wheel's name has: PYTHON, this one, or pythonX.Y."""
    tag = wheel.name.split("-")[2]
    for python in filter(None, (os.environ.get("PYTHON"), sys.executable, shutil.which(f"python{tag[2]}.{tag[3:]}"))):
        done = subprocess.run([python, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])"], capture_output=True,
                              text=True)
        if done.stdout.strip() == tag:
            return python
    sys.exit(f"wheels: {wheel.name} needs another Python; name one in PYTHON")


def check_module(user, wheel, built):
    venv = user.environment("module", python_for(wheel), wheel)
    for test in ("core", "environments"):
        user.run(venv / "bin/python", ROOT / f"tests/wheels/{test}_test.py", built)
    say(f"{wheel.name} passes its tests")
    module = user.folder / "carnot_rl_core"
    user.run(venv / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps", "--target", module, wheel)
    for test, packages in (("trl", "trainers"), ("verl", "trainers"), ("prime_rl", "adapters"),
                           ("gymnasium", "adapters"), ("verifiers", "earlier_adapters")):
        user.run(ROOT / ".cache/test_packages" / packages / "bin/python", ROOT / f"tests/wheels/{test}_test.py",
                 PYTHONPATH=str(module), HF_HUB_OFFLINE="1")
        say(f"tests/wheels/{test}_test.py passes")


def main(dist, built):
    dist, built = pathlib.Path(dist).resolve(), pathlib.Path(built).resolve()
    with tempfile.TemporaryDirectory() as folder:
        for wheel in dist.glob("carnot_rl_core-*.whl"):
            check_module(User(folder, ordinary=False), wheel, built)
    with tempfile.TemporaryDirectory() as folder:
        user = User(folder, ordinary=True)
        program, = dist.glob("carnot_rl-*.whl")
        check_launcher(user, program, check_program(user, program, built))


if __name__ == "__main__":
    main(*sys.argv[1:])
