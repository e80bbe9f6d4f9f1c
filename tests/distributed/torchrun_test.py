"""Two ranks under torchrun equal one process, even if one of them is killed midway and torchrun restarts them.

torchrun_test.py CARNOT PYTHON FOLDER: PYTHON has torch. Exits with 77 if torchrun cannot be started.
"""
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

RECIPE = """
threads: 1
resume: auto
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
rollout: {group_size: 2, max_context_tokens: 256, max_response_tokens: 16}
train: {steps: 12, groups_per_step: 4, save_every: 1, micro_batch_tokens: 256, learning_rate: 1e-3, virtual_shards: 2}
eval: {tasks: 2}
"""


def ranks_of(launcher: int) -> list[int]:
    children = pathlib.Path(f"/proc/{launcher}/task/{launcher}/children")
    try:
        return [int(word) for word in children.read_text().split()]
    except FileNotFoundError:
        return []


def weights(run: pathlib.Path) -> str:
    return hashlib.sha256((run / "checkpoints/global_step_12/model.safetensors").read_bytes()).hexdigest()


def main(carnot: str, python: str, folder: pathlib.Path) -> int:
    torchrun = [python, "-m", "torch.distributed.run"]
    subprocess.run(torchrun + ["--help"], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    recipe = folder / "recipe.yaml"
    recipe.write_text(RECIPE)
    alone, together = folder / "alone", folder / "together"
    subprocess.run([carnot, "train", recipe, f"run_folder={alone}"], check=True, stdout=subprocess.DEVNULL)
    launcher = subprocess.Popen(
        torchrun + ["--standalone", "--no-python", "--nproc-per-node", "2", "--max-restarts", "2",
                    carnot, "train", str(recipe), f"run_folder={together}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    killed = None
    deadline = time.monotonic() + 240
    while launcher.poll() is None and time.monotonic() < deadline:
        if killed is None and (together / "checkpoints/global_step_2").exists():
            killed = ranks_of(launcher.pid)[-1]
            os.kill(killed, signal.SIGKILL)
            break
        time.sleep(0.01)
    errors = launcher.communicate(timeout=240)[1]
    assert killed is not None, f"no rank was killed: {errors}"
    assert launcher.returncode == 0, errors
    lines = [line for line in errors.splitlines() if line.startswith("carnot: rank ")]
    assert len(lines) == 1 and f"(process {killed})" in lines[0], errors
    assert weights(together) == weights(alone), "the weights differ from those of one process"
    print("equal, after:", lines[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])))
