"""Packages for tests of Python programs, in a virtual environment of their own."""
import os
import subprocess
import sys

SKIPPED = 77


def python_with_package(folder, package, module):
    """The Python of FOLDER/venv, in which `package` is installed and provides `module`. Ends the test as skipped where
    it cannot be installed."""
    python = os.path.join(folder, "venv", "bin", "python")
    known = [python, "-c", "import " + module]
    if os.path.exists(python) and subprocess.run(known, capture_output=True, check=False).returncode == 0:
        return python
    for command in ([sys.executable, "-m", "venv", os.path.join(folder, "venv")],
                    [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "0",
                     "--timeout", "15", package]):
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            print(f"skipped: {package} cannot be installed:", made.stderr[-500:])
            sys.exit(SKIPPED)
    return python
