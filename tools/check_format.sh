#!/usr/bin/env bash
# Lists the C++ sources that clang-format would change, and lines of more than 120 columns; fails if there are any.
# `--fix` rewrites the sources first. Installs clang-format, in the version that the sources follow, into .venv if it is
# missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wanted=19.1.7
formatter=.venv/bin/clang-format
if ! "$formatter" --version 2>/dev/null | grep -qF "version $wanted"; then
  [[ -x .venv/bin/python ]] || python3 -m venv .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir "clang-format==$wanted"
fi

mapfile -t sources < <(git ls-files '*.cpp' '*.h' ':!third_party')
[[ ${1:-} != --fix ]] || "$formatter" -i "${sources[@]}"

failed=0
"$formatter" --dry-run --Werror "${sources[@]}" || failed=1
# Columns, not bytes.
.venv/bin/python - "${sources[@]}" <<'PY' || failed=1
import sys

long = [f"{path}:{number}: {len(line)} columns" for path in sys.argv[1:]
        for number, line in enumerate(open(path, encoding="utf-8").read().split("\n"), 1) if len(line) > 120]
print("\n".join(long), end="\n" if long else "")
sys.exit(bool(long))
PY
((failed == 0)) || echo "format: tools/check_format.sh --fix applies clang-format; fix the rest by hand" >&2
exit "$failed"
