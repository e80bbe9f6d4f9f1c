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
