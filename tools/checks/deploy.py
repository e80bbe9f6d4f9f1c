#!/usr/bin/env python3
"""What can be checked of deploy/ without a cluster: manifests fit the Kubernetes schemas, and scripts are valid shell.

    python3 -m venv venv && venv/bin/pip install -r tools/checks/requirements_deploy.txt
    venv/bin/python tools/checks/deploy.py build/carnot

The package has no schema of LeaderWorkerSet: only its pod template is checked. Each `carnot train` is run with
--dry-run to see whether it accepts the settings.
"""
import pathlib
import subprocess
import sys
import tempfile

import kubernetes_validate
import yaml

KUBERNETES = "1.33"
ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPE = "env: {name: search_qa}\ntrain: {steps: 1, groups_per_step: 1}\n"


def pod_of_group(manifest):
    template = manifest["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": template["spec"]}


def containers(manifest):
    spec = manifest["spec"]
    template = spec["leaderWorkerTemplate"]["workerTemplate"] if "leaderWorkerTemplate" in spec else spec.get("template")
    return template["spec"]["containers"] if template else []


def check_settings(carnot, arguments):
    with tempfile.TemporaryDirectory() as folder:
        recipe = pathlib.Path(folder, "recipe.yaml")
        recipe.write_text(RECIPE)
        settings = [a for a in arguments[2:] if not a.startswith("run_folder=")]
        done = subprocess.run([carnot, "train", recipe, f"run_folder={folder}/run", "--dry-run", *settings],
                              capture_output=True, text=True, env={"CARNOT_TRAINER_KEY": "key"})
        if done.returncode != 0:
            sys.exit(f"{arguments}: {done.stderr}")


def main(carnot):
    for path in sorted(ROOT.glob("deploy/kubernetes/*.yaml")):
        for manifest in yaml.safe_load_all(path.read_text()):
            group = manifest["kind"] == "LeaderWorkerSet"
            kubernetes_validate.validate(pod_of_group(manifest) if group else manifest, KUBERNETES, strict=True)
            for container in containers(manifest):
                if container.get("args", [""])[0] == "train":
                    check_settings(carnot, container["args"])
            print(f"{path.relative_to(ROOT)}: {manifest['kind']} {manifest['metadata']['name']}")
    for path in sorted(ROOT.glob("deploy/slurm/*.sbatch")):
        subprocess.run(["bash", "-n", path], check=True)
        print(f"{path.relative_to(ROOT)}: shell")


if __name__ == "__main__":
    main(sys.argv[1])
