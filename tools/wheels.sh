#!/usr/bin/env bash
# Builds the wheels carnot-rl and carnot-rl-core into build/wheels/dist, as they are published (docs/releasing.md).
#
#   tools/wheels.sh [carnot-rl] [carnot-rl-core]    default: both
#
# The program is taken from build/, which is brought up to date. PYTHON names the Python that the module is for.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'wheels: %s\n' "$*"; }
trap 'say "stopped at line $LINENO: $BASH_COMMAND" >&2' ERR

python=${PYTHON:-python3}
tools=$PWD/.cache/wheel_tools/$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
dist=$PWD/build/wheels/dist

install_tools() {
  if cmp --quiet packaging/requirements.txt "$tools/installed"; then return; fi
  say "installing packaging/requirements.txt into $tools"
  rm -rf "$tools"
  "$python" -m venv "$tools"
  "$tools/bin/python" -m pip install --quiet --disable-pip-version-check -r packaging/requirements.txt
  cp packaging/requirements.txt "$tools/installed"
}

build() {
  local raw=$PWD/build/wheels/raw/$1
  rm -rf "$raw"
  rm -f "$dist/${1//-/_}"-[0-9]*-py3-none-*.whl
  say "building $1"
  python -m build --wheel --no-isolation --outdir "$raw" "packaging/$1"
  # LibTorch and its OpenMP runtime come with torch.
  auditwheel repair --wheel-dir "$dist" --exclude 'libtorch*' --exclude 'libc10*' --exclude 'libgomp*' "$raw"/*.whl
}

install_tools
export PATH=$tools/bin:$PATH
mkdir -p "$dist"
(($# > 0)) || set -- carnot-rl carnot-rl-core
for name in "$@"; do build "$name"; done
