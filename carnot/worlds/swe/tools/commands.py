# Commands


def decoded(data):
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


class Output(threading.Thread):
    """Reads a pipe to its end and keeps the beginning and the end of what comes."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.head, self.tail = pipe, b"", b""
        self.start()

    def run(self):
        while piece := os.read(self.pipe.fileno(), 1 << 16):
            room = KEPT_BYTES - len(self.head)
            self.head += piece[:room]
            self.tail = (self.tail + piece[room:])[-KEPT_BYTES:]

    def text(self):
        return decoded(self.head + self.tail)


def variables():
    """The interpreter of the sandbox comes first, also under the name `python`."""
    own = os.path.join(HOME, OWN_FOLDER)
    beside = os.path.dirname(sys.executable)
    if not os.path.exists(os.path.join(beside, "python")):
        os.makedirs(own, exist_ok=True)
        with contextlib.suppress(OSError):
            os.symlink(sys.executable, os.path.join(own, "python"))
    path = os.pathsep.join([beside, own, os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PWD": ROOT}


def shell(command, seconds, together=False):
    """(exit code, standard output, standard error) of a fresh shell; TIMED_OUT where it takes too long."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", inward(command)],
        cwd=ROOT,
        env=variables(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if together else subprocess.PIPE,
    )
    outputs = [Output(pipe) for pipe in (process.stdout, process.stderr) if pipe]
    deadline = time.monotonic() + seconds
    for output in outputs:  # a program in the background may hold them open
        output.join(max(0, deadline - time.monotonic()))
    try:
        code = process.wait(max(0, deadline - time.monotonic()))
        if any(output.is_alive() for output in outputs):
            code = TIMED_OUT
    except subprocess.TimeoutExpired:
        code = TIMED_OUT
    if code == TIMED_OUT:
        with contextlib.suppress(OSError):
            process.kill()
    texts = [outward(output.text()) for output in outputs]
    return code & 0xFF, texts[0], texts[-1]


def execute_bash(words, seconds):
    parser = argparse.ArgumentParser(prog="execute_bash", add_help=True)
    parser.add_argument("--cmd", required=True)
    command = parser.parse_args(words).cmd
    first = command.strip().split()[0] if command.strip() else ""
    if first in REFUSED_COMMANDS:
        print(f"Bash command '{first}' is not allowed. Please use a different command or tool.")
        return 1
    code, output, error = shell(command, seconds)
    if code == TIMED_OUT:
        return TIMED_OUT
    if code:
        print("Error executing command:\n")
    print(f"[STDOUT]\n\n{output.strip()} \n\n[STDERR]\n\n{error.strip()}")
    return code


TOOLS = {"file_editor": file_editor, "search": search, "execute_bash": execute_bash}


def run_tool(words, seconds):
    """What the container of the original gives back: (output, exit code in its words)."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            code = TOOLS[words[0]](words[1:], seconds)
        except SystemExit as end:
            code = end.code or 0
    if code == TIMED_OUT:
        return f"The command took too long to execute (>{seconds:g}s)", "-1"
    if code:
        return printed.getvalue(), f"Error: Exit code {code}"
    return re.sub(r"\x1b\[[0-9;]*m|\r", "", printed.getvalue()), "0"
