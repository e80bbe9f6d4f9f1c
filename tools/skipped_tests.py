#!/usr/bin/env python3
"""Lists the tests that ctest's last run skipped, and why.

    tools/skipped_tests.py BUILD_FOLDER              one line for each reason with its number of cases
    tools/skipped_tests.py BUILD_FOLDER --allowed    the same; exit status 1 if one is not in tests/allowed_skips.toml
    tools/skipped_tests.py BUILD_FOLDER --programs REASON   the ctest programs that skipped for it, as ctest -R wants them

A test names what the machine lacks (testing/missing.h; "missing REASON: detail"). What it may lack, and how that is
determined without the tests, is in tests/allowed_skips.toml.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
REASON = re.compile(r"missing ([^:]+): ")
SKIPPED = re.compile(r"\[  SKIPPED \] (\S+) \(\d+ ms\)")
PROGRAM = re.compile(r"\d+/\d+ Test(?:ing|): (\S+)")


def skipped_cases(log):
    """(program, case, reason) of each skipped case in the text of LastTest.log; a reason that no test names is None."""
    program, reason = "", None
    for line in log.splitlines():
        if started := PROGRAM.match(line):
            program, reason = started.group(1), None
        elif named := REASON.search(line):
            reason = named.group(1)
            if line.startswith("skipped: "):  # a whole program in Python
                yield program, program, reason
        elif case := SKIPPED.match(line):
            yield program, case.group(1), reason
            reason = None
        elif line.startswith("Test ") and "Skipped" in line and reason is None:
            yield program, program, None


def conditions():
    """This machine's properties, in the words of tests/allowed_skips.toml."""
    try:
        processor = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        processor = ""
    flags = set(re.findall(r"\w+", next((line for line in processor.splitlines() if line.startswith("flags")), "")))
    lacking = {f"no {name}" for name in ("amx_bf16", "avx512_bf16", "avx512bw", "avx2") if name not in flags}
    namespaces = subprocess.run(["unshare", "--user", "--net", "true"], capture_output=True, check=False)
    facts = {
        "no GPU": not os.path.exists("/dev/nvidiactl"),
        "GPU": os.path.exists("/dev/nvidiactl"),
        "not Intel": "GenuineIntel" not in processor,
        "no namespaces": namespaces.returncode != 0,
        "not root": os.geteuid() != 0,
        "no published data": not os.environ.get("CARNOT_DATA"),
    }
    return lacking | {name for name, holds in facts.items() if holds}


def is_allowed(case, reason, here):
    """Whether a rule of the table names the case and a condition that holds here."""
    with open(ROOT / "tests" / "allowed_skips.toml", "rb") as file:
        rules = tomllib.load(file)["rule"]
    return any(rule["reason"] == reason and rule["where"] in here and re.fullmatch(rule["cases"], case)
               for rule in rules)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--allowed", action="store_true")
    parser.add_argument("--programs", metavar="REASON")
    arguments = parser.parse_args()
    log = (arguments.build / "Testing" / "Temporary" / "LastTest.log").read_text(encoding="utf-8", errors="replace")
    cases = list(skipped_cases(log))
    if arguments.programs:
        names = sorted({program for program, _, reason in cases if reason == arguments.programs})
        print("^(" + "|".join(map(re.escape, names)) + ")$" if names else "^$")
        return 0
    for reason, count in sorted(collections.Counter(str(reason or "not named") for *_, reason in cases).items()):
        print(f"skipped: {count} cases, missing: {reason}")
    if not arguments.allowed:
        return 0
    here = conditions()
    refused = [(program, case, reason) for program, case, reason in cases if not is_allowed(case, reason, here)]
    for program, case, reason in refused:
        print(f"skipped, but not in tests/allowed_skips.toml for this machine: {program}: {case}: {reason or 'no reason'}")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
