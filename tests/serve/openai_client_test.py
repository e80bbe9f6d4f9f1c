"""examples/openai_client.py against the real server and the real `openai` package.

    python3 openai_client_test.py CARNOT WORK_FOLDER [PYTHON]

PYTHON has the package; without it, one is put into a virtual environment in WORK_FOLDER. Where that cannot be done (no
network), the test is skipped: exit status 77.
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from python_package import python_with_package

SOURCE = os.path.join(HERE, "..", "..")
PACKAGE = "openai==3.54.0"

RECIPE = """
run_folder: {folder}/run
env: {{name: search_qa, train_worlds: 1, held_out_worlds: 1}}
model: {{hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}}
sft: {{steps: 1}}
rollout: {{group_size: 2}}
train: {{groups: 1}}
eval: {{tasks: 1}}
"""


def main():
    carnot, folder = sys.argv[1], sys.argv[2]
    os.makedirs(folder, exist_ok=True)
    python = sys.argv[3] if len(sys.argv) > 3 else python_with_package(folder, PACKAGE, "openai")
    recipe = os.path.join(folder, "recipe.yaml")
    with open(recipe, "w", encoding="utf-8") as file:
        file.write(RECIPE.format(folder=folder))
    subprocess.run(["rm", "-rf", os.path.join(folder, "run")], check=True)
    subprocess.run([carnot, "sft", recipe], check=True, stdout=subprocess.DEVNULL)
    server = subprocess.Popen([carnot, "serve", "--model", os.path.join(folder, "run"),
                               "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()
        client = subprocess.run([python, os.path.join(SOURCE, "examples", "openai_client.py"), address], check=False)
    finally:
        server.terminate()
    status = server.wait()
    assert client.returncode == 0, "the client failed"
    assert status == 0, f"the server ended with status {status}"


if __name__ == "__main__":
    main()
