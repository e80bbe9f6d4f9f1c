# Runs pytest in each folder of the one that is named, and writes what it prints into a file NAME.log next to it.
#
# pytest is imported once; each run has its own process, two at a time.
import os
import sys

import pytest


def run(folder):
    log = os.open(folder + ".log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    pytest.main(["-rA", "-p", "no:cacheprovider", "--color=no", "--tb=line"])
    sys.stdout.flush()
    os._exit(0)


def main():
    top = os.path.abspath(sys.argv[1])
    folders = sorted(os.path.join(top, name) for name in os.listdir(top))
    running = 0
    for folder in folders:
        if running == 2:
            os.wait()
            running -= 1
        if os.fork() == 0:
            run(folder)
        running += 1
    for _ in range(running):
        os.wait()


main()
