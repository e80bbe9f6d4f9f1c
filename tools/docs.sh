#!/usr/bin/env bash
# Builds the documentation as a site into build/site, with mkdocs-material in its own virtual environment.
#
# Pages link to each other and to sources by their paths in the repository. So the site is built from a copy of the
# pages, and of the files that they link to, at the same paths.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=build/docs_venv
source=build/site_source

fail() {
  printf 'docs: %s\n' "$*" >&2
  exit 1
}

if ! cmp -s tools/docs_requirements.txt "$venv/installed.txt"; then
  printf 'docs: installing mkdocs-material in %s\n' "$venv"
  python3 -m venv "$venv" || fail "python3 cannot make a virtual environment; install python3-venv."
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r tools/docs_requirements.txt ||
    fail "pip could not install mkdocs-material; see its message above (is there a network?)."
  cp tools/docs_requirements.txt "$venv/installed.txt"
fi

rm -rf "$source"
mkdir -p "$source"
cp -r --parents README.md ARCHITECTURE.md CONTRIBUTING.md LICENSE docs bench/results recipes "$source"
find carnot tests/golden/chat tests/golden/tokenizer -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.json*' \) \
  -exec cp --parents -t "$source" {} +
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --quiet --strict || fail "the site was not built; see the messages above."
printf 'docs: build/site is ready; to read and search it: python3 -m http.server --directory build/site\n'
