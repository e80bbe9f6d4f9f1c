#!/usr/bin/env bash
# Installs what Carnot needs and this machine lacks: Debian packages, and in .venv LibTorch from the torch wheel,
# jinja2, which renders chat templates, and typing_extensions, which torchrun needs.
#
# Idempotent: with everything in place it changes nothing and needs no network. Outside the project's folder it uses the
# package manager only. A LibTorch of your own: CMAKE_PREFIX_PATH=/path/to/libtorch tools/install.sh
set -Eeuo pipefail

PACKAGES=(
  libgumbo-dev
  ca-certificates git g++ cmake ninja-build ccache pkg-config xz-utils
  python3 python3-dev python3-venv python3-pip python3-pytest
  libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev
  libpcre2-dev libutf8proc-dev liblzma-dev libssl-dev libvalijson-dev libcpp-httplib-dev libseccomp-dev libgloo-dev
  libhnswlib-dev libnats-dev nats-server libprotozero-dev
  libgtest-dev libgmock-dev
)

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

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

# "Need to get 12.3 MB of archives.", "After this operation, 61 MB of additional disk space will be used."
say_sizes() {
  local line
  while read -r line; do say "$line"; done < <(LC_ALL=C apt-get install --assume-no --no-install-recommends "$@" 2>/dev/null |
    grep -E '^(Need to get|After this operation)' || true)
}

install_packages() {
  command -v dpkg-query >/dev/null || fail "this is not Debian; install the counterparts of: ${PACKAGES[*]}"
  local missing as_root=()
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then
    say "all ${#PACKAGES[@]} Debian packages are installed."
    return
  fi
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "need root or sudo to run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  need_space / 2 "Installing Debian packages"
  say "installing Debian packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq || fail "apt-get update failed; see its message above (is there a network?)."
  say_sizes "${missing[@]}"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" ||
    fail "apt-get could not install: ${missing[*]}; see its message above."
}

# A LibTorch that the user names takes precedence over the wheel.
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

install_libtorch() {
  local named
  named=$(named_libtorch)
  if [[ -n $named ]]; then
    say "LibTorch of CMAKE_PREFIX_PATH: $named"
    return
  fi
  "$root/tools/install_libtorch.sh" "$root/.venv"
}

install_jinja() {
  local python=$root/.venv/bin/python wanted=$root/python/requirements-chat-templates.txt
  if "$python" -c 'import sys, jinja2, markupsafe
sys.exit("jinja2==%s" % jinja2.__version__ not in open(sys.argv[1]).read())' "$wanted" 2>/dev/null; then
    say "jinja2 is in .venv."
    return
  fi
  [[ -x $python ]] || python3 -m venv "$root/.venv" || fail "could not make a virtual environment in $root/.venv."
  say "installing jinja2 into .venv"
  "$python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps -r "$wanted" ||
    fail "pip could not install $wanted; see its message above (is there a network?)."
}

# torchrun is in the wheel, and starts with this next to it. Nothing else needs it.
install_torchrun() {
  local python=$root/.venv/bin/python
  [[ -x $python ]] || return 0
  "$python" -c 'import typing_extensions' 2>/dev/null && return
  say "installing typing_extensions into .venv, for torchrun"
  "$python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps typing_extensions ||
    say "pip could not install typing_extensions: torchrun will not start; everything else works."
}

install_packages
install_libtorch
install_jinja
install_torchrun
