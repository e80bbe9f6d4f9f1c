"""examples/openai_client.py against the real server and the real `openai` package.

    python3 openai_client_test.py CARNOT WORK_FOLDER PYTHON

PYTHON has the package (tools/install_test_packages.sh).
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "..", "..")

RECIPE = """
run_folder: {folder}/run
env: {{name: search_qa, train_worlds: 1, held_out_worlds: 1}}
model: {{hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}}
sft: {{steps: 1}}
rollout: {{group_size: 2}}
train: {{groups_per_step: 1}}
eval: {{tasks: 1}}
"""


def main():
    carnot, folder, python = sys.argv[1:4]
    os.makedirs(folder, exist_ok=True)
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
