#!/usr/bin/env bash
# Installs NVRTC, NVIDIA's compiler of CUDA C++ as a library, into .venv: the Python package nvidia-cuda-nvrtc, 58 MB to
# download, under NVIDIA's licence. Prints the library. A CUDA build of the torch wheel has it already. On a machine
# without a GPU, only the tests that compile device code need it, which are skipped without it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=$root/.venv/bin/python
library() { find -L "$root"/.venv/lib/python3*/site-packages/nvidia -name 'libnvrtc.so*' -print -quit 2>/dev/null || true; }

if [[ -z $(library) ]]; then
  [[ -x $python ]] || python3 -m venv "$root/.venv"
  "$python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps nvidia-cuda-nvrtc==13.5.37
fi
library
