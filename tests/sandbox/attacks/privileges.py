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
