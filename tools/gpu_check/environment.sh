# Sourced by build, test and bench: what was packed comes first, then what the machine has.

cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
root=$PWD
state=$root/build-gpu/gpu_check
packages=$root/gpu_check_packages
mkdir -p "$state"
budget=${GPU_CHECK_SECONDS:-540} # of one command

say() { printf 'gpu_check: %s\n' "$*"; }
fail() {
  printf 'gpu_check: %s\n' "$*" >&2
  exit 1
}

# Seconds left to this command.
left() { echo $((budget - SECONDS)); }

libraries=
if [[ -d $packages ]]; then
  for folder in "$packages"/usr/lib/*-linux-gnu "$packages"/lib/*-linux-gnu; do
    [[ ! -d $folder ]] || libraries+=${libraries:+:}$folder
  done
  includes=$packages/usr/include
  for folder in "$packages"/usr/include/*-linux-gnu; do
    [[ ! -d $folder ]] || includes+=:$folder
  done
  export CPLUS_INCLUDE_PATH=$includes${CPLUS_INCLUDE_PATH:+:$CPLUS_INCLUDE_PATH}
  export LIBRARY_PATH=$libraries${LIBRARY_PATH:+:$LIBRARY_PATH}
  export PKG_CONFIG_LIBDIR=${libraries//:/\/pkgconfig:}/pkgconfig:$packages/usr/share/pkgconfig
  export PKG_CONFIG_SYSROOT_DIR=$packages
fi

# Python's own libraries stay as they are; ours find the packed ones.
with_libraries() { LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"; }

python=${GPU_CHECK_PYTHON:-python3}

# The folder of the torch package, or a LibTorch that is named.
libtorch() {
  [[ -z ${GPU_CHECK_LIBTORCH:-} ]] || {
    echo "$GPU_CHECK_LIBTORCH"
    return
  }
  "$python" -c 'import os, torch; print(os.path.dirname(torch.__file__))' ||
    fail "$python has no torch; name a LibTorch with GPU_CHECK_LIBTORCH=/path/to/torch."
}
