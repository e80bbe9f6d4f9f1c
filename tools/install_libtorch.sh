#!/usr/bin/env bash
# Gets LibTorch: the torch wheel, without what only Python needs, in a virtual environment.
#
#   install_libtorch.sh VENV      into that folder: tools/install.sh, for building
#   install_libtorch              the installed copy: into the folder that it is in, where the installed carnot looks
#
# Idempotent: with everything in place it changes nothing and needs no network.
set -Eeuo pipefail

TORCH_VERSION=2.13.0
TORCH_GIGABYTES=4 # a CUDA wheel, downloaded and unpacked

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
venv=${1:-$here/venv}

say() { printf 'install: %s\n' "$*"; }
fail() {
  printf 'install: %s\n' "$*" >&2
  exit 1
}

trap 'fail "stopped at line $LINENO: $BASH_COMMAND"' ERR

need_space() { # folder, gigabytes
  local free
  free=$(df --output=avail --block-size=1M "$1" | tail -n 1)
  ((free >= $2 * 1024)) || fail "LibTorch needs about $2 GB in $1, but only $((free / 1024)) GB are free."
}

make_venv() {
  if "$venv/bin/python" -m pip --version >/dev/null 2>&1; then return; fi
  [[ ! -e $venv && ! -L $venv ]] || fail "$venv exists but has no working pip; remove it and run this again."
  local python
  for python in python3 /usr/bin/python3; do # a pyenv shim may be dangling
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then continue; fi
    say "making a virtual environment in $venv with $("$python" --version)"
    "$python" -m venv "$venv" || fail "could not make a virtual environment in $venv; see the message above."
    return
  done
  fail "no python3 that can make virtual environments; install python3-venv."
}

pip_install() {
  local quiet=(--quiet)
  [[ ! -t 1 ]] || quiet=() # a terminal shows the download's progress
  "$venv/bin/python" -m pip install "${quiet[@]}" --disable-pip-version-check --no-cache-dir "$@" ||
    fail "pip could not install $*; see its message above (is there a network, and a wheel for this Python?)."
}

# The folder of the wheel's libraries; nothing if there is no wheel.
torch_folder() {
  local library
  for library in "$venv"/lib/python3*/site-packages/torch/lib/libtorch_cpu.so; do
    [[ ! -f $library ]] || dirname "$library"
  done
}

# The CUDA wheel's libtorch_cpu.so needs two small CUDA libraries, even without a GPU. --no-deps left out several
# gigabytes that are not needed to build or to run on a CPU; these two are added again, with the wheel's own pins.
install_cuda_pieces() {
  local packages=$1 metadata toolkit pieces
  metadata=$(find -L "$packages" -path '*/torch-*.dist-info/METADATA' -print -quit)
  [[ -n $metadata ]] || return 0
  [[ -z $(find -L "$packages/nvidia" -name 'libcudart.so*' -print -quit 2>/dev/null) ]] || return 0
  toolkit=$(sed -nE 's/^Requires-Dist: cuda-toolkit\[[^]]*\] ?\(?(==[0-9.]+).*/\1/p' "$metadata" | head -n 1)
  mapfile -t pieces < <(sed -nE 's/^Requires-Dist: (nvidia-cuda-(runtime|cupti)[a-z0-9-]*) ?\(?(==[0-9.]+).*/\1\3/p' "$metadata")
  if [[ -n $toolkit ]]; then
    pieces=("cuda-toolkit[cudart,cupti]$toolkit")
  fi
  ((${#pieces[@]} > 0)) || return 0 # a CPU wheel
  say "installing the CUDA runtime libraries that this wheel loads: ${pieces[*]}"
  pip_install "${pieces[@]}"
}

get_wheel() {
  local lib
  lib=$(torch_folder)
  if [[ -z $lib ]]; then
    need_space "$(dirname "$venv")" "$TORCH_GIGABYTES"
    make_venv
    say "installing LibTorch: the torch $TORCH_VERSION wheel, without its dependencies"
    say "up to 0.6 GB to download: a minute at 100 Mbit/s, ten at 10"
    pip_install --no-deps "torch==$TORCH_VERSION"
    lib=$(torch_folder)
    [[ -n $lib ]] || fail "the torch wheel has no lib/libtorch_cpu.so; expected it below $venv."
  fi
  install_cuda_pieces "${lib%/torch/lib}"
  say "LibTorch is in $lib."
}

# The name under which an installed carnot looks for it.
link_beside() {
  local lib
  lib=$(torch_folder)
  ln -sfnr "${lib%/lib}" "$here/libtorch"
}

[[ -n ${1:-} || -w $here ]] || fail "$here cannot be written; run this as root: sudo $here/$(basename "$0")"
get_wheel
[[ -n ${1:-} ]] || link_beside
