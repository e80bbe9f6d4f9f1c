# The file editor


class EditorError(Exception):
    pass


def clipped(text):
    return text if len(text) <= LONGEST_VIEW else text[:LONGEST_VIEW] + CLIPPED


def numbered(text, what, first=1):
    lines = clipped(text).expandtabs().split("\n")
    body = "\n".join(f"{first + at:6}\t{line}" for at, line in enumerate(lines))
    return f"Here's the result of running `cat -n` on {what}:\n{body}\n"


class Editor:
    def __init__(self):
        try:
            with open(os.path.join(HOME, EDITS), encoding="utf-8") as file:
                self.edits = json.load(file)
        except (OSError, ValueError):
            self.edits = {}

    def save(self):
        with open(os.path.join(HOME, EDITS), "w", encoding="utf-8") as file:
            json.dump(self.edits, file)

    def run(self, given):
        self.shown = Path(given.path)
        self.path = Path(inward(given.path))
        if given.command == "create":
            if self.path.exists():
                raise EditorError(f"File already exists at: {self.shown}. Cannot overwrite with 'create'.")
        elif not self.path.exists():
            raise EditorError(f"The path '{self.shown}' does not exist.")
        if self.path.is_dir() and given.command != "view":
            raise EditorError(f"The path '{self.shown}' is a directory. Only 'view' can be used on directories.")
        if given.command == "view":
            return self.view(given.view_range, given.concise.lower() == "true")
        if given.command == "create":
            return self.create(given.file_text, given.enable_linting)
        if given.command == "str_replace":
            return self.replace(given.old_str, given.new_str or "", given.enable_linting)
        if given.command == "insert":
            return self.insert(given.insert_line, given.new_str, given.enable_linting)
        if given.command == "undo_edit":
            return self.undo()
        raise EditorError(
            f"Unrecognized command '{given.command}'. Allowed commands: view, create, str_replace, insert, undo_edit."
        )

    def read(self):
        try:
            return self.path.read_text(encoding="utf-8")
        except Exception as error:
            raise EditorError(f"Failed to read file {self.shown}: {outward(str(error))}") from None

    def write(self, text):
        try:
            self.path.write_text(text, encoding="utf-8")
        except Exception as error:
            raise EditorError(f"Failed to write file {self.shown}: {outward(str(error))}") from None

    def remember(self, text):
        self.edits.setdefault(str(self.shown), []).append(text)

    def check_syntax(self, text, wanted):
        if not wanted or self.path.suffix != ".py":
            return
        try:
            ast.parse(text, filename=str(self.shown))
        except SyntaxError as error:
            raise SyntaxProblem(
                "Your proposed edit has introduced new syntax error(s).\n"
                f"Please read this error message carefully and then retry editing the file.\nERRORS:\n{error}"
            ) from None

    def list_folder(self):
        """What `find -L FOLDER -maxdepth 2` lists of folders and Python files, but in the order of their names."""
        lines = []

        def walk(path, shown, depth):
            lines.append(shown)
            if depth == 2:
                return
            for name in sorted(os.listdir(path)):
                below, shown_below = os.path.join(path, name), os.path.join(shown, name)
                if "/." in shown_below:
                    continue
                if os.path.isdir(below):
                    walk(below, shown_below, depth + 1)
                elif name.endswith(".py"):
                    lines.append(shown_below)

        walk(str(self.path), str(self.shown), 0)
        listing = "".join(line + "\n" for line in lines)
        return clipped(
            f"Here's the files and directories up to 2 levels deep in {self.shown}, excluding hidden:\n{listing}"
        )

    def view(self, chosen, condensed):
        if self.path.is_dir():
            return self.list_folder()
        if self.path.suffix != ".py":
            raise SyntaxProblem(
                "ERROR: Viewing non-Python files is disallowed for saving context. "
                f"File '{self.shown.name}' is not a .py file."
            )
        text = self.path.read_text(encoding="utf-8")
        if not chosen and len(text.splitlines()) > LONGEST_UNCONDENSED:
            condensed = True
        lines = self.outline(text) if condensed else list(enumerate(text.splitlines()))
        if chosen:
            first, last = chosen
            if not 1 <= first <= len(lines):
                raise SyntaxProblem(f"Invalid view_range {chosen}: start line must be in [1, {len(lines)}]")
            if last != -1 and (last < first or last > len(lines)):
                raise SyntaxProblem(
                    f"Invalid view_range {chosen}: end must be >= start and <= {len(lines)}, or -1 to view until end."
                )
            lines = [(at, line) for at, line in lines if at + 1 >= first and (last == -1 or at + 1 <= last)]
        if condensed:
            heading = (
                f"Here is a condensed view for file: {self.shown}; [Note: Useful for understanding file structure in a "
                "concise manner. Please use specific view_range without concise cmd if you want to explore further "
                "into the relevant parts.]\n"
            )
        else:
            heading = f"Here's the result of running `cat -n` on the file: {self.shown}:\n"
        return clipped(heading + "\n".join(f"{at + 1:6d} {line}" for at, line in lines))

    def outline(self, text):
        """Lines by number, without the bodies of functions of four lines and more."""
        try:
            tree = ast.parse(text, filename=str(self.shown))
        except SyntaxError as error:
            raise EditorError(f"Syntax error for file {self.shown}: {error}") from None
        ranges = []
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first, last = node.body[0].lineno - 1, node.body[-1].end_lineno - 1
                if last - first >= 3:
                    ranges.append((first, last))
            elif isinstance(node, ast.ClassDef) and ast.get_docstring(node, clean=False) is not None:
                first, last = node.body[0].lineno - 1, node.body[0].end_lineno - 1
                if last - first >= 4:
                    ranges.append((first + 1, last - 1))
        left_out = {line for first, last in ranges for line in range(first, last + 1)}
        notes = [(first, f"... eliding lines {first + 1}-{last + 1} ...") for first, last in ranges]
        kept = [(at, line) for at, line in enumerate(text.splitlines()) if at not in left_out]
        return sorted(notes + kept, key=lambda one: one[0])

    def create(self, text, lints):
        if text is None:
            raise EditorError("Cannot create file without 'file_text' parameter.")
        self.check_syntax(text, lints)
        try:
            self.path.write_text(text, encoding="utf-8")
        except Exception as error:
            raise EditorError(f"Error creating file at {self.shown}: {outward(str(error))}") from None
        self.remember("")
        return (
            f"File created at {self.shown}. {numbered(text, self.shown)}"
            "Review the file and make sure that it is as expected. Edit the file if necessary."
        )

    def replace(self, old, new, lints):
        if old is None:
            raise EditorError("Missing required parameter 'old_str' for 'str_replace'.")
        text = self.read()
        found = text.count(old)
        if found == 0:
            raise EditorError(f"No occurrences of '{old}' found in {self.shown} for replacement.")
        if found > 1:
            raise EditorError(
                f"Multiple occurrences of '{old}' found in {self.shown}. "
                "Please ensure it is unique before using str_replace."
            )
        changed = text.replace(old, new)
        self.check_syntax(changed, lints)
        self.remember(text)
        self.write(changed)
        line = text[: text.index(old)].count("\n")
        first = max(0, line - SNIPPET_LINES)
        snippet = "\n".join(changed.split("\n")[first : line + SNIPPET_LINES + new.count("\n") + 1])
        return (
            f"The file {self.shown} has been edited. {numbered(snippet, f'a snippet of {self.shown}', first + 1)}"
            "Review the changes and make sure they are as expected. Edit the file again if necessary."
        )

    def insert(self, after, new, lints):
        if new is None:
            raise EditorError("Missing required parameter 'new_str' for 'insert'.")
        text = self.read()
        lines, added = text.split("\n"), new.split("\n")
        if after < 0 or after > len(lines):
            raise EditorError(f"Invalid insert_line {after}. Must be in [0, {len(lines)}].")
        changed = "\n".join(lines[:after] + added + lines[after:])
        self.check_syntax(changed, lints)
        self.remember(text)
        self.write(changed)
        first = max(0, after - SNIPPET_LINES)
        snippet = "\n".join(lines[first:after] + added + lines[after : after + SNIPPET_LINES])
        return (
            f"The file {self.shown} has been edited. "
            f"{numbered(snippet, 'a snippet of the edited file', max(1, after - SNIPPET_LINES + 1))}"
            "Review the changes and make sure they are as expected "
            "(correct indentation, no duplicate lines, etc). Edit the file again if necessary."
        )

    def undo(self):
        earlier = self.edits.get(str(self.shown))
        if not earlier:
            raise EditorError(f"No previous edits found for {self.shown} to undo.")
        text = earlier.pop()
        self.write(text)
        return f"Last edit to {self.shown} undone successfully. {numbered(text, self.shown)}"


class SyntaxProblem(Exception):
    """Told after an empty result."""


def two_numbers(text):
    parts = text.strip().strip("[]()").replace(",", " ").split()
    if len(parts) != 2:
        raise argparse.ArgumentTypeError(f"Expected two numbers, got: {text.strip().strip('[]()')}")
    try:
        return [int(parts[0]), int(parts[1])]
    except ValueError:
        raise argparse.ArgumentTypeError(f"Could not convert {parts} to integers.") from None


def file_editor(words, _):
    parser = argparse.ArgumentParser(prog="file_editor", add_help=True)
    parser.add_argument("command")
    for name in ("path", "file_text"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--view_range", type=two_numbers)
    for name in ("old_str", "new_str"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--insert_line", type=int)
    parser.add_argument("--enable_linting", type=bool, default=False)
    parser.add_argument("--concise", default="False")
    parser.add_argument("--python_only", type=bool, default=True)
    given = parser.parse_args(words)
    editor = Editor()
    try:
        print(editor.run(given))
    except EditorError as error:
        print(f"ERROR: {error}")
    except SyntaxProblem as problem:
        print(f"\nERROR: {problem}")
    except Exception as error:
        print(f"ERROR: Unhandled exception: {outward(str(error))}")
    if editor.edits:
        editor.save()
    return 0
