# Attacks on the sandbox, each run by attacks_test.cpp as its own call after the lines up to the first "#:".
#
# "#: NAME -> STATUS ..." begins one and lists how the call may end. An attack that succeeds prints ESCAPED. Each gives
# up by itself before it would harm a machine on which it succeeds.
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


#: fork_bomb -> refused
for count in range(3000):
    if os.fork() == 0:
        time.sleep(2)
        os._exit(0)
escaped()

#: fork_bomb_of_every_child -> ok error refused timeout
for generation in range(8):
    try:
        os.fork()
    except OSError:
        time.sleep(0.1)

#: thread_bomb -> error refused
import threading
for count in range(3000):
    threading.Thread(target=time.sleep, args=(2,), daemon=True).start()
escaped()

#: memory_of_one_process -> memory
held = bytearray(1 << 30)
escaped()

#: memory_of_many_processes -> memory refused
holding, child_holds = os.pipe()
for child in range(6):
    if os.fork() == 0:
        held = b"x" * (100 << 20)
        os.write(child_holds, b"1")
        time.sleep(8)
        os._exit(0)
for child in range(6):
    os.read(holding, 1)
time.sleep(3)
escaped()

#: memory_without_a_process -> refused
try_each(lambda: call(319, b"held", 0), lambda: call(29, 0, 1 << 28, 0o1600), lambda: call(240, b"queue", 0o102, 0o600, 0))

#: one_large_file -> refused
with open("large", "wb") as file:
    for piece in range(64):
        file.write(b"x" * (1 << 20))
time.sleep(3)
escaped()

#: many_files -> refused
for number in range(64):
    with open(f"file{number}", "wb") as file:
        file.write(b"x" * (1 << 20))
time.sleep(3)
escaped()

#: many_empty_files -> refused timeout
for number in range(20000):
    open(f"file{number}", "w").close()
time.sleep(3)
escaped()

#: many_open_files -> refused
held = [open("/dev/null") for count in range(1000)]
escaped()

#: deep_folders -> ok
for level in range(400):
    os.mkdir("folder")
    os.chdir("folder")

#: output_flood -> refused timeout
until = time.time() + 20
while time.time() < until:
    sys.stdout.write("x" * (1 << 16))
escaped()

#: error_flood -> refused timeout
until = time.time() + 20
while time.time() < until:
    os.write(2, b"x" * (1 << 16))
escaped()

#: endless_loop -> timeout
until = time.time() + 20
while time.time() < until:
    pass
escaped()

#: endless_loop_that_ignores_signals -> timeout
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
until = time.time() + 20
while time.time() < until:
    pass
escaped()

#: sleep -> timeout
time.sleep(20)
escaped()

#: stop_itself -> timeout refused error
os.kill(os.getpid(), signal.SIGSTOP)
escaped()

#: wait_for_input_that_does_not_come -> ok error
sys.stdin.read()

#: sleeping_child -> ok
named_child()

#: daemon -> ok refused
if os.fork() == 0:
    os.setsid()
    named_child()
    os._exit(0)
os.wait()

#: network -> refused
import socket
try_each(lambda: socket.create_connection(("127.0.0.1", outside["port"]), 2),
         lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM), lambda: socket.socket(socket.AF_INET6))

#: names_of_the_network -> error
import socket
socket.getaddrinfo("example.com", 80)
escaped()

#: listen -> refused
import socket
with socket.socket() as server:
    server.bind(("0.0.0.0", 0))
    server.listen()
escaped()

#: raw_sockets -> refused
import socket
try_each(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
         lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW), lambda: socket.socket(socket.AF_NETLINK),
         lambda: socket.socket(socket.AF_VSOCK))

#: sockets_of_the_system -> refused
import socket
try_each(lambda: socket.socket(socket.AF_UNIX), lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))

#: trace_the_parent -> refused
try_each(lambda: call(101, 16, outside["parent"], 0, 0), lambda: call(101, 16, os.getppid(), 0, 0),
         lambda: call(101, 0x4206, outside["parent"], 0, 0))

#: read_the_parents_memory -> refused
class Piece(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]
mine, theirs = Piece(ctypes.addressof(ctypes.create_string_buffer(8)), 8), Piece(0x400000, 8)
try_each(lambda: call(310, outside["parent"], ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0),
         lambda: call(434, os.getppid(), 0))

#: signal_the_parent -> refused error
def signalled(process):
    os.kill(process, 0)
    return process
try_each(lambda: signalled(outside["parent"]), lambda: signalled(-outside["parent"]))

#: kill_everybody -> ok error refused
for process in (1, os.getppid(), -1):
    try:
        os.kill(process, signal.SIGKILL)
    except OSError as problem:
        print(problem)

#: processes_of_the_system -> ok
for process in ("1", str(outside["parent"]), "self/root/proc/1"):
    for what in ("environ", "cmdline", "mem", "maps", "root/etc/passwd"):
        try:
            with open(f"/proc/{process}/{what}", "rb") as file:
                escaped(file.read(64))
        except OSError:
            pass

#: settings_of_the_system -> ok
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/fs/cgroup/release_agent", "/sys/power/state"):
    try:
        with open(path, "r+b"):
            escaped(path)
    except OSError:
        pass

#: files_outside -> ok
for path in (outside["secret"], "/etc/shadow", "/etc/ssh/sshd_config", "/etc/hosts", "/root/.bashrc"):
    try:
        with open(path) as file:
            escaped(path)
    except OSError:
        pass

#: folders_outside -> ok
for path in ("/", "/root", "/home", "/var", os.path.dirname(outside["secret"])):
    try:
        found = os.listdir(path)
    except OSError:
        continue
    for name in found:
        if name not in ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "dev", "tmp"):
            escaped(path + " " + name)

#: write_outside -> ok
for folder in (outside["writable"], "/usr/lib", "/etc", "/dev", "/", "/var/tmp", "/dev/shm/../../usr"):
    try:
        with open(os.path.join(folder, "written"), "w"):
            escaped(folder)
    except OSError:
        pass

#: symbolic_link -> ok
for target in (outside["secret"], "../../../../.." + outside["secret"], "/proc/1/root" + outside["secret"]):
    os.symlink(target, "link")
    try:
        with open("link") as file:
            escaped(file.read())
    except OSError:
        pass
    os.unlink("link")

#: hard_link -> error refused
os.link(outside["secret"], "link")
escaped()

#: change_files_outside -> error refused
try_each(lambda: os.truncate(outside["secret"], 0), lambda: os.chmod(outside["secret"], 0o777),
         lambda: os.utime(outside["secret"], (1, 1)), lambda: os.rename(outside["secret"], "stolen"),
         lambda: os.unlink(outside["secret"]), lambda: os.rmdir(outside["writable"]))

#: change_the_interpreter -> error refused
try_each(lambda: open(os.__file__, "a"), lambda: os.rename(os.__file__, os.__file__ + "x"), lambda: os.chmod("/usr", 0o777))

#: other_root -> refused
try_each(lambda: os.chroot("."), lambda: call(155, b".", b"."))

#: become_root -> refused
try_each(lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.setreuid(0, 0))

#: programs_that_become_root -> ok
import subprocess
for command in (["/usr/bin/su", "root", "-c", "id -u"], ["/usr/bin/mount", "-t", "tmpfs", "x", "/tmp"]):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=0.3)
    except (OSError, subprocess.TimeoutExpired):
        continue
    if done.returncode == 0:
        escaped(command)

#: a_program_of_its_own_that_becomes_root -> ok error refused
import subprocess
with open("/usr/bin/id", "rb") as source, open("id", "wb") as copy:
    copy.write(source.read())
os.chmod("id", 0o6755)
if subprocess.run(["./id", "-u"], capture_output=True, text=True).stdout.strip() == "0":
    escaped()

#: mount -> refused
try_each(lambda: call(165, b"x", b"/tmp", b"tmpfs", 0, b""), lambda: call(166, b"/usr", 2),
         lambda: call(428, -100, b"/", 1), lambda: call(430, b"tmpfs", 0), lambda: call(442, -100, b"/", 0, b"", 32))

#: namespaces -> refused
try_each(lambda: call(308, 5, 0), lambda: call(272, 0x10000000), lambda: call(272, 0x00020000),
         lambda: call(56, 0x10000000 | 17, 0, 0, 0, 0), lambda: call(435, ctypes.create_string_buffer(88), 88))

#: keys_of_the_kernel -> refused
try_each(lambda: call(250, 0, -3, 1), lambda: call(248, b"user", b"a", b"b", 1, -3), lambda: call(249, b"user", b"a", 0, -3))

#: io_uring -> refused
call(425, 8, ctypes.create_string_buffer(120))
escaped()

#: kernel_programs -> refused
try_each(lambda: call(321, 0, ctypes.create_string_buffer(128), 128), lambda: call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0),
         lambda: call(323, 0), lambda: call(313, 0, b"", 0))

#: devices -> error refused
import stat
try_each(lambda: os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(254, 0)), lambda: os.mknod("memory", 0o600 | stat.S_IFCHR, os.makedev(1, 1)),
         lambda: open("/dev/vda", "rb"), lambda: open("/dev/mem", "rb"), lambda: open("/dev/kmsg", "rb"), lambda: open("/dev/ptmx", "rb"))

#: clock_and_host -> refused
import socket
try_each(lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()), lambda: socket.sethostname("x"),
         lambda: call(169, 0, 0, 0, 0))

#: priority -> refused
try_each(lambda: os.nice(-5), lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))

#: higher_limits -> error refused
import resource
try_each(lambda: resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)),
         lambda: resource.setrlimit(resource.RLIMIT_NPROC, (10000, 10000)),
         lambda: resource.prlimit(os.getppid(), resource.RLIMIT_AS, (1, 1)))

#: calls_of_another_architecture -> refused
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # getpid of 32 bits, return
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
escaped()

#: a_terminals_input -> error refused
import fcntl
fcntl.ioctl(0, 0x5412, b"x")
escaped()

#: descriptors_left_open -> ok
for descriptor in range(3, 4096):
    if descriptor == 6:
        continue  # the worker's own, which takes a message about its end
    try:
        escaped(os.fstat(descriptor))
    except OSError:
        pass

#: variables_left_behind -> ok
if "CARNOT_ATTACK_SECRET" in os.environ or "/work" in str(os.environ):
    escaped()

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
