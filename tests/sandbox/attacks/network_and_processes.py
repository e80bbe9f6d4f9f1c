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
