# Attacks on the sandbox, each run by attacks_test.cpp as its own call after the lines of this file.
#
# In the other files of this folder, "#: NAME -> STATUS ..." begins one and lists how the call may end. An attack that
# succeeds prints ESCAPED. Each gives up by itself before it would harm a machine on which it succeeds.
import ctypes, errno, os, signal, sys, time

outside = eval(sys.stdin.readline())  # parent, secret, writable, port, name
libc = ctypes.CDLL(None, use_errno=True)


def escaped(what=""):
    print("ESCAPED", what, flush=True)


def call(number, *arguments):
    """A system call by its number on x86-64; returns its result, or raises as Python does."""
    got = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got


def try_each(*steps):
    """Every step is tried; the last refusal is raised when all have been."""
    refusal = None
    for step in steps:
        try:
            got = step()
        except (OSError, ValueError) as problem:
            refusal = problem
        else:
            escaped(repr(got)[:200])
    if refusal is not None:
        raise refusal


def named_child():
    """A child that outlives the call if it can; the test looks for its name."""
    if os.fork() == 0:
        libc.prctl(15, outside["name"].encode(), 0, 0, 0)
        time.sleep(30)
        os._exit(0)
