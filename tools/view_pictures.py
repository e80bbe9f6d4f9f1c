#!/usr/bin/env python3
"""Makes the pictures of docs/view.md and docs/view_tour.md from a finished run, in headless Chromium.

    .cache/test_packages/browser/bin/python tools/view_pictures.py RUN [TREE_RUN]

from the repository root, once build/carnot is built; needs Debian's `chromium` and playwright
(tools/install_test_packages.sh). TREE_RUN: one whose groups branch, for view_chain.png.
"""

import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

METHODS = "grpo, grpo + aem"
# The group with the widest spread of rewards, its best sibling first.
OPEN_GROUP = """() => {
  ui.order.value = "spread";
  filter();
  go_to(0);
  const members = state.groups[0].members;
  choose_sibling(members.indexOf(members.find(member => member.leaf.success) ?? members[0]));
}"""
OPEN_LAST_TURN = """() => {
  choose_turn(state.groups[state.group].members[state.sibling].turns.length - 1);
  open_turn();
}"""
OPEN_TREE = """() => {
  const branched = state.groups.findIndex(is_branched);
  go_to(Math.max(0, branched));
  document.querySelector(".trees .branch").dispatchEvent(new MouseEvent("click"));
  open_turn();
}"""


def carnot(*arguments):
    subprocess.run(["build/carnot", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def picture(browser, address, path, *actions):
    page = browser.new_page(viewport={"width": 1440, "height": 860})
    page.goto(address)
    page.wait_for_timeout(1000)
    for action in actions:
        page.evaluate(action)
    page.wait_for_timeout(300)
    page.screenshot(path=path)
    page.close()


def main(run, trees):
    folder = pathlib.Path("docs")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        html = pathlib.Path(scratch) / "page.html"
        address = f"file://{html}"
        carnot("view", run, "--output", html)
        picture(browser, address, folder / "view.png", OPEN_GROUP, "() => set_mode(0)")
        picture(browser, address, folder / "view_token.png", OPEN_GROUP, OPEN_LAST_TURN, "() => set_mode(4)")
        carnot("view", run, "--output", html, "--methods", METHODS)
        picture(browser, address, folder / "view_methods.png", OPEN_GROUP,
                "() => { ui.other.value = '1'; methods_changed(); }")
        steps = [int(path.name.split("_")[-1]) for path in pathlib.Path(run).glob("checkpoints/global_step_*")]
        carnot("view", run, "--output", html, "--after", "--steps", min(steps))
        picture(browser, address, folder / "view_moved.png", OPEN_GROUP, OPEN_LAST_TURN,
                "() => set_mode(kModes.findIndex(mode => mode.name === 'moved'))")
        if trees:
            carnot("view", trees, "--output", html)
            picture(browser, address, folder / "view_chain.png", OPEN_TREE)
        server = subprocess.Popen(["build/carnot", "view", run, "--follow", "--port", "0", "--methods", METHODS],
                                  stdout=subprocess.PIPE, text=True)
        picture(browser, server.stdout.readline().split()[0], folder / "view_live.png", OPEN_GROUP,
                "() => { ui.other.value = '1'; methods_changed(); ui.numbers.open = true; }")
        server.send_signal(signal.SIGINT)
        server.wait()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
