# Runs one piece of code, once: started ahead of its call, with the modules that its arguments name already imported.
#
# It reads the request from descriptor 5 (see sandboxed_process.cpp) and tells on descriptor 6 that it is ready, and at
# the end what kind of exception no one caught. It trusts nothing: what it says decides about a word in the result only.
import _ast  # and not ast, which takes long to import
import errno
import linecache
import os
import sys
import traceback
from _ast import PyCF_ONLY_AST

REQUEST, REMARK = 5, 6
NAME = "<code>"
REFUSALS = (errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOSYS, errno.EAGAIN, errno.ENOSPC, errno.EFBIG, errno.EMFILE)


def parts(data):
    """The request's parts: a line with kind, size and name, then as many bytes."""
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        kind, size, name = data[at:end].decode().split(" ", 2)
        at = end + 1 + int(size)
        yield kind, name, data[end + 1 : at]


def execute(code, shows_last, names):
    """With `shows_last` the value of a last line that is an expression is printed, unless it is None."""
    tree = compile(code, NAME, "exec", PyCF_ONLY_AST)
    last = None
    if shows_last and tree.body and isinstance(tree.body[-1], _ast.Expr):
        last = compile(_ast.Expression(tree.body.pop().value), NAME, "eval")
    exec(compile(tree, NAME, "exec"), names)
    value = None if last is None else eval(last, names)
    if value is not None:
        print(value)


def run(code, shows_last, remark):
    module = type(sys)("__main__")
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    linecache.cache[NAME] = (len(code), None, code.splitlines(keepends=True), NAME)
    try:
        execute(code, shows_last, module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        word = b""
        if isinstance(error, MemoryError):
            word = b"memory"
        elif isinstance(error, OSError) and error.errno in REFUSALS:
            word = b"refused"
        show(error)
        os.write(remark, word)
        raise SystemExit(1) from None


def show(error):
    """As the interpreter would, without this file's own frames."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != NAME:
        frames = frames.tb_next
    try:
        traceback.print_exception(type(error), error, frames)
    except BaseException:
        os.write(2, type(error).__name__.encode() + b"\n")


def main():
    for name in sys.argv[1:]:
        __import__(name)
    os.write(REMARK, b"ready\n")
    with open(REQUEST, "rb") as request:
        data = request.read()
    if not data:
        os._exit(0)
    os.set_inheritable(REMARK, False)
    code, shows_last = "", False
    for kind, name, content in parts(data):
        if kind == "code":
            code = content.decode("utf-8", "replace")
        elif kind == "show":
            shows_last = True
        elif kind == "file":
            if os.path.dirname(name):
                os.makedirs(os.path.dirname(name), exist_ok=True)
            with open(name, "wb") as file:
                file.write(content)
    del data
    sys.argv = [""]
    sys.stdout.reconfigure(line_buffering=True)
    run(code, shows_last, REMARK)


main()
