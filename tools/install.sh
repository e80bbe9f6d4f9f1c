#!/usr/bin/env bash
# Installs what Carnot needs and this machine lacks: Debian packages, and LibTorch from the torch wheel in .venv.
#
# Idempotent: with everything in place it changes nothing and needs no network. Outside the project's folder it
# touches the package manager only. A LibTorch of your own: CMAKE_PREFIX_PATH=/path/to/libtorch tools/install.sh
set -Eeuo pipefail

TORCH_VERSION=2.13.0
TORCH_GIGABYTES=4 # a CUDA wheel, downloaded and unpacked
PACKAGES=(
  ca-certificates git g++ cmake ninja-build ccache pkg-config xz-utils
  python3 python3-venv python3-pip
  libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev
  libpcre2-dev libutf8proc-dev liblzma-dev libssl-dev
  libgtest-dev libgmock-dev
)

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv

say() { printf 'install: %s\n' "$*"; }
fail() {
  printf 'install: %s\n' "$*" >&2
  exit 1
}

trap 'fail "stopped at line $LINENO: $BASH_COMMAND"' ERR

need_space() { # folder, gigabytes, what for
  local free
  free=$(df --output=avail --block-size=1M "$1" | tail -n 1)
  ((free >= $2 * 1024)) || fail "$3 needs about $2 GB in $1, but only $((free / 1024)) GB are free."
}

missing_packages() {
  local package
  for package in "${PACKAGES[@]}"; do
    dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

install_packages() {
  command -v dpkg-query >/dev/null || fail "this is not Debian; install the counterparts of: ${PACKAGES[*]}"
  local missing as_root=()
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then
    say "all ${#PACKAGES[@]} Debian packages are there."
    return
  fi
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "need root or sudo to run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  need_space / 2 "Installing Debian packages"
  say "installing Debian packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq || fail "apt-get update failed; see its message above (is there a network?)."
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" ||
    fail "apt-get could not install: ${missing[*]}; see its message above."
}

# A LibTorch that the user names wins over the wheel.
named_libtorch() {
  local prefix candidate
  IFS=':;' read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do
    for candidate in "$prefix" "$prefix/torch" "$prefix/.." "$prefix/../.."; do
      if [[ -f $candidate/lib/libtorch_cpu.so ]]; then
        echo "$candidate"
        return
      fi
    done
  done
}

make_venv() {
  if "$venv/bin/python" -m pip --version >/dev/null 2>&1; then return; fi
  [[ ! -e $venv && ! -L $venv ]] || fail "$venv exists but has no working pip; remove it and run this again."
  local python
  for python in python3 /usr/bin/python3; do # a pyenv shim may lead nowhere
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then continue; fi
    say "making a virtual environment in $venv with $("$python" --version)"
    "$python" -m venv "$venv" || fail "could not make a virtual environment in $venv; see the message above."
    return
  done
  fail "no python3 that can make virtual environments; install python3-venv."
}

pip_install() {
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir "$@" ||
    fail "pip could not install $*; see its message above (is there a network, and a wheel for this Python?)."
}

# Where the wheel's libraries are; nothing where there is no wheel.
torch_folder() {
  local library
  for library in "$venv"/lib/python3*/site-packages/torch/lib/libtorch_cpu.so; do
    [[ ! -f $library ]] || dirname "$library"
  done
}

# The CUDA wheel's libtorch_cpu.so wants two small CUDA libraries, also where there is no GPU. --no-deps left out
# several gigabytes that are not needed to build or to run on a CPU; these two come back, with the wheel's own pins.
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

install_libtorch() {
  local named lib
  named=$(named_libtorch)
  if [[ -n $named ]]; then
    say "LibTorch of CMAKE_PREFIX_PATH: $named"
    return
  fi
  lib=$(torch_folder)
  if [[ -z $lib ]]; then
    need_space "$root" "$TORCH_GIGABYTES" "LibTorch"
    make_venv
    say "installing LibTorch: the torch $TORCH_VERSION wheel, without its dependencies (up to 0.6 GB to download)"
    pip_install --no-deps "torch==$TORCH_VERSION"
    lib=$(torch_folder)
    [[ -n $lib ]] || fail "the torch wheel holds no lib/libtorch_cpu.so; expected it below $venv."
  fi
  install_cuda_pieces "${lib%/torch/lib}"
  say "LibTorch is in $lib."
}

install_packages
install_libtorch
