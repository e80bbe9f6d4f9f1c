#: a_false_word_about_the_end -> ok
os.write(6, b"memory")

#: end_as_if_killed_from_outside -> refused
def from_a_child(kill):
    if os.fork() == 0:
        try:
            kill()
        finally:
            os._exit(0)
    os.wait()
    raise OSError(errno.EPERM, "still here")
program = os.getpid()
information = ctypes.create_string_buffer((9).to_bytes(4, "little") + b"\0" * 4 + b"\xff" * 4, 128)
ways = [lambda: os.kill(program, 9), lambda: os.kill(0, 9), lambda: os.kill(-1, 9), lambda: os.killpg(os.getpgrp(), 9),
        lambda: call(62, program | 1 << 32, 9), lambda: call(62, program, 9 | 1 << 32), lambda: call(200, program, 9),
        lambda: call(234, program, program, 9), lambda: call(129, program, 9, information),
        lambda: call(424, os.pidfd_open(program), 9, 0, 0)]
try_each(*ways)
try_each(*[lambda way=way: from_a_child(way) for way in ways])

#: end_by_a_timer_with_sigkill -> refused
timer, event = ctypes.c_int(), ctypes.create_string_buffer(b"\0" * 8 + (9).to_bytes(4, "little"), 64)
call(222, 1, event, ctypes.byref(timer))
call(223, timer.value, 0, (ctypes.c_long * 4)(0, 0, 0, 1), 0)
escaped()

#: end_by_a_pipe_with_sigkill -> refused
import fcntl
reading, writing = os.pipe()
fcntl.fcntl(reading, fcntl.F_SETOWN, os.getpid())
call(72, reading, 10 | 1 << 32, 9)
escaped()

#: end_by_a_limit_of_processor_time -> refused timeout
import resource
for limit in (lambda: resource.setrlimit(resource.RLIMIT_CPU, (0, 0)), lambda: call(160, 1 << 32, (ctypes.c_long * 2)(0, 0))):
    try:
        limit()
        escaped()
    except OSError:
        pass
while time.process_time() < 20:
    pass

#: crash -> error
ctypes.string_at(8)

#: overflow_the_stack -> error memory timeout
sys.setrecursionlimit(1 << 30)
def deeper():
    return repr([deeper()])
deeper()
escaped()

#: close_everything -> ok error
os.closerange(0, 64)

#: replace_the_worker -> ok
os.execv("/bin/sh", ["sh", "-c", "echo replaced; cat " + outside["secret"] + " 2>/dev/null; true"])
