#!/usr/bin/env bash
# Copies the licences of the Debian libraries that auditwheel puts into a wheel next to its programs.
#
#   licences.sh FOLDER PROGRAM...
set -euo pipefail
folder=$1
shift

# Not the C and C++ libraries, which a wheel does not hold.
libraries() {
  ldd "$@" | sed -nE 's/.* => (\/(usr\/)?lib[^ ]*) .*/\1/p' |
    grep -vE '/lib(c|m|gcc_s|stdc\+\+|pthread|dl|rt)\.so' | sort -u
}

# Libraries are found under /lib, and listed by dpkg under either that or /usr/lib.
mapfile -t found < <(libraries "$@")
mapfile -t packages < <({ dpkg-query --search "${found[@]}" "${found[@]/#//usr}" 2>/dev/null || true; } |
  cut -d: -f1 | sort -u)

mkdir -p "$folder"
for package in "${packages[@]}"; do
  cp -L "/usr/share/doc/$package/copyright" "$folder/LICENSE.$package"
done
