"""The command `carnot`: finds the installed torch, checks its version, and becomes the program."""
import importlib.util
import os
import pathlib
import re
import sys

from carnot_rl.built_with import TORCH

PACKAGE = pathlib.Path(__file__).resolve().parent


def torch_folder():
    """The folder of the torch that this Python would import, which takes seconds and is not done."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        sys.exit(f"carnot: there is no torch for {sys.executable}; this program needs torch {TORCH}: "
                 f"pip install 'torch=={TORCH}.*'")
    return pathlib.Path(spec.origin).resolve().parent


def check_version(folder):
    found = re.search(r"^__version__ = '([^']*)'", (folder / "version.py").read_text(), re.MULTILINE)
    version = found.group(1) if found else "of an unknown version"
    if not version.startswith(TORCH + "."):
        sys.exit(f"carnot: torch {version} is installed in {folder}, but this program was built with torch {TORCH} and "
                 f"cannot use another: pip install 'torch=={TORCH}.*', or a carnot-rl that was built with yours")


def surroundings(folder):
    """Environment variables of the program: this Python comes first, as where its environment is activated."""
    variables = dict(os.environ)
    before = variables.get("PATH", os.defpath)
    variables["PATH"] = os.path.dirname(sys.executable) + os.pathsep + before
    if folder.parent != PACKAGE.parent:  # else the program finds torch beside its own package
        further = variables.get("LD_LIBRARY_PATH")
        variables["LD_LIBRARY_PATH"] = str(folder / "lib") + (os.pathsep + further if further else "")
    return variables


def main():
    folder = torch_folder()
    check_version(folder)
    program = PACKAGE / "bin" / "carnot"
    os.execve(program, ["carnot", *sys.argv[1:]], surroundings(folder))
