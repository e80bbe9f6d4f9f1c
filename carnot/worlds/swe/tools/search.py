# The search


def search(words, _):
    parser = argparse.ArgumentParser(prog="search", add_help=True)
    parser.add_argument("--search_term", required=True)
    parser.add_argument("--path", default=".")
    parser.add_argument("--python_only", default=True)
    given = parser.parse_args(words)
    path = inward(given.path)
    if os.path.isfile(path):
        return search_file(given.search_term, os.path.realpath(path))
    return search_folder(given.search_term, os.path.realpath(path), bool(given.python_only))


def search_file(term, path):
    grep = subprocess.run(["grep", "-n", term, path], capture_output=True, stdin=subprocess.DEVNULL)
    if grep.returncode == 0:
        print(f'Matches for "{term}" in {outward(path)}:')
        print(decoded(grep.stdout).strip())
    elif grep.returncode == 1:
        print(f'No matches found for "{term}" in {outward(path)}')
        return 0
    else:
        print(f"Error executing grep:\n{decoded(grep.stderr)}")
    return grep.returncode


def search_folder(term, folder, python_only):
    shown = outward(folder)
    if not os.path.isdir(folder):
        print(f"Directory '{shown}' not found or not a directory.")
        return 1
    counts = {}
    for path, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.startswith(".") or (python_only and not name.endswith(".py")):
                continue
            try:
                with open(os.path.join(path, name), errors="ignore") as file:
                    count = sum(term in line for line in file)
            except OSError:
                continue
            if count:
                counts[os.path.join(path, name)] = count
    if not counts:
        print(f'No matches found for "{term}" in {shown}')
        return 0
    if len(counts) > 100:
        print(f'More than {len(counts)} files matched for "{term}" in {shown}. Please narrow your search.')
        return 0
    print(f'Found {sum(counts.values())} matches for "{term}" in {shown}:')
    for path, count in counts.items():
        relative = os.path.relpath(path)
        print(f"{relative if relative.startswith('./') else './' + relative} ({count} matches)")
    print(f'End of matches for "{term}" in {shown}')
    return 0
