#!/usr/bin/env python3
"""How fast a large page of `carnot view` is in headless Chromium.

    .cache/test_packages/browser/bin/python bench/view_page.py RUN [MEGABYTES]

from the repository root, once build/carnot is built. The rows of RUN's last step are repeated until the page has the
size. Prints seconds until the first group is painted, and milliseconds of a filter by text (the first time, and once
texts are put together), of the next group, of scrolling the list, and of a trajectory of 100,000 tokens.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

TIMED = """action => new Promise(done => {
  const start = performance.now();
  (0, action)();
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
})"""
ACTIONS = {
    "filter by text": "ui.search.value = 'doc 1'; filter()",
    "filter by text, again": "ui.search.value = 'doc 2'; filter()",
    "no filter": "ui.search.value = ''; filter()",
    "next group": "go_to(state.group + 1)",
    "last group": "go_to(state.groups.length - 1)",
    "scroll the list": "ui.list.scrollTop = 0",
    "colour": "set_mode(1)",
}


def repeated(rows, folder, megabytes):
    """A run folder whose only step has the rows again and again; returns its number of groups."""
    (folder / "rollouts").mkdir(parents=True)
    size, copies, groups = 0, 0, 0
    with (folder / "rollouts" / "step_1.jsonl").open("w") as out:
        while size < 8 * megabytes * 1e6:  # a row's numbers are shorter on the page
            for row in rows:
                line = json.dumps({**row, "info": {**row["info"], "copy": str(copies)}, "uid": f"{row['uid']}-{copies}", "traj_id": f"{row['traj_id']}-{copies}"})
                size += len(line) + 1
                out.write(line + "\n")
            copies += 1
            groups += len({row["uid"] for row in rows})
    return groups


def long_row(row, tokens):
    """The row with its turns repeated up to so many tokens."""
    times = -(-tokens // len(row["token_ids"]))
    lists = {name: value * times for name, value in row.items() if isinstance(value, list) and name != "turns" and
             len(value) == len(row["token_ids"])}
    turns = []
    for n in range(times):
        offset = n * len(row["token_ids"])
        turns += [{**turn, "start": turn["start"] + offset, "end": turn["end"] + offset,
                   "reward": turn["reward"] if n == times - 1 else 0} for turn in row["turns"]]
    return {**row, **lists, "turns": turns, "uid": "long", "traj_id": "long.0"}


def open_page(browser, folder, megabytes):
    subprocess.run(["build/carnot", "view", folder, "--megabytes", str(megabytes)], check=True, stdout=subprocess.DEVNULL)
    path = folder / "view.html"
    page = browser.new_page(viewport={"width": 1440, "height": 860})
    page.goto(f"file://{path}")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    while page.evaluate("document.readyState === 'loading' || document.querySelector('script.more') !== null"):
        page.wait_for_timeout(20)
    print(f"{path.stat().st_size / 1e6:.1f} MB, {page.evaluate('data.groups.length')} groups: first paint after "
          f"{paint / 1000:.2f} s, all groups after {page.evaluate('performance.now()') / 1000:.1f} s")
    page.wait_for_timeout(4000)  # texts are put together for the search
    return page


def timed(page, action):
    return page.evaluate(f"() => ({TIMED})(() => {{ {action} }})")


def main(run, megabytes):
    last = max(run.glob("rollouts/step_*.jsonl"), key=lambda path: int(path.stem.split("_")[1]))
    rows = [json.loads(line) for line in last.read_text().splitlines()]
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        scratch = pathlib.Path(scratch)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in ("many", "long"):
            (scratch / name).mkdir()
            tokenizer = next(run.glob("checkpoints/*/tokenizer.json"))
            shutil.copy(tokenizer, scratch / name / "tokenizer.json")
        repeated(rows, scratch / "many", megabytes)
        page = open_page(browser, scratch / "many", megabytes)
        for name, action in ACTIONS.items():
            print(f"  {name}: {timed(page, action):.0f} ms")
        page.close()
        (scratch / "long" / "rollouts").mkdir()
        longest = max(rows, key=lambda row: len(row["token_ids"]))
        (scratch / "long" / "rollouts" / "step_1.jsonl").write_text(json.dumps(long_row(longest, 100_000)) + "\n")
        page = open_page(browser, scratch / "long", megabytes)
        print(f"  scroll to the end: {timed(page, 'ui.main.scrollTop = ui.main.scrollHeight'):.0f} ms")
        browser.close()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 64)
