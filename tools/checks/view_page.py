#!/usr/bin/env python3
"""Opens pages of `carnot view` in headless Chromium, presses the keys, and compares what is shown with the rows.

Run from the repository root, once build/carnot is built, with Debian's package `chromium` and:
    pip install -r tools/checks/requirements_view.txt
    python3 tools/checks/view_page.py RUN [PICTURE.png]

RUN is a run folder. One page is of that run, one of a copy of its rows in which every string is hostile. PICTURE is a
screenshot of the first page.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\x1b[2J\u202e"


def carnot(*arguments):
    subprocess.run(["build/carnot", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def rows_of(run, step):
    groups = {}
    for line in (run / "rollouts" / f"step_{step}.jsonl").read_text().splitlines():
        row = json.loads(line)
        groups.setdefault(row["uid"], []).append(row)
    return list(groups.values())


class Opened:
    """A page, with its errors, dialogs and outside requests."""

    def __init__(self, browser, path, **settings):
        self.page = browser.new_page(viewport={"width": 1500, "height": 900}, **settings)
        self.problems = []
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: self.problems.append("a dialog"))
        self.page.on("request", lambda request: request.url.startswith("file:") or self.problems.append(request.url))
        self.page.goto(f"file://{path.resolve()}")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def count(self, selector):
        return self.page.locator(selector).count()

    def close(self):
        assert not self.page.evaluate("window.hacked"), "a script of the rows has run"
        assert not self.problems, self.problems
        self.page.close()


def shown(text):
    """A string as the page shows it, without the sign of line breaks in sampled tokens: control characters are signs."""
    signs = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"}
    return text.replace("\u21b5\n", "\n").translate({**signs, 127: "\u2421"})


def check_texts(opened, groups):
    """Walks through the groups with j; every sibling's text and tokens are those of its row."""
    for i, rows in enumerate(groups):
        cards = opened.page.locator("article")
        assert cards.count() == len(rows), (i, cards.count())
        for n, row in enumerate(rows):
            card = cards.nth(n)
            assert card.locator("b").first.text_content() == row["traj_id"]
            tokens = card.evaluate("card => [...card.querySelectorAll('details')].reduce((sum, fold) => {"
                                   "fold.fill(); return sum + fold.querySelectorAll('i').length; }, 0)")
            assert tokens == sum(row["loss_mask"]), (row["traj_id"], tokens)
            text = "".join(card.locator(".text").all_text_contents())
            assert shown(text) == shown(row["input"] + row["output"]), row["traj_id"]
        opened.press("j")


def colours(opened):
    return opened.page.evaluate("new Set([...document.querySelectorAll('main i')].map(t => t.style.background)).size")


def check_keys(opened, groups):
    page = opened.page
    opened.press(*["k"] * len(groups))
    first = page.locator("h2").first.text_content()
    assert colours(opened) > 3, "entropy has no colours"
    opened.press("ArrowRight")
    assert "chosen" in page.locator("article").nth(1).get_attribute("class")
    opened.press("x")
    assert page.locator("article").nth(1).locator("details[open]").count() == 0
    opened.press("x", "s")
    assert opened.count("article") == 1
    opened.press("s", "2")
    assert "advantage" in page.locator("footer").text_content()
    opened.press("4")
    assert "clip state" in page.locator("footer").text_content()
    opened.press("1", "?")
    assert page.locator("dialog[open]").count() == 1
    opened.press("?", "t")
    assert page.evaluate("document.documentElement.className") == "dark"
    opened.press("t", "j")
    assert page.locator("h2").first.text_content() != first
    page.locator("main i").first.hover()
    assert "entropy" in page.locator("#token").text_content()
    page.locator("select").nth(1).select_option("+")
    successes = sum(any(row["success"] for row in rows) for rows in groups)
    assert opened.count("nav a") == successes, (opened.count("nav a"), successes)
    page.locator("select").nth(1).select_option("")
    opened.press("/")
    page.keyboard.type("a string that does not occur")
    assert opened.count("nav a") == 0 and opened.count("article") == 0
    page.locator("input.search").fill("")
    assert opened.count("nav a") == len(groups)


def check_waterfall(opened, groups):
    """Every sampled token's chain ends at the advantage and weight of its row; the panel shows it, and its link."""
    page = opened.page
    page.evaluate("location.hash = ''")
    ends = page.evaluate("""data.groups.map(group => members_of(group).map(member => member.turns.flatMap((turn, k) => {
        const [begin, end] = member.tree.turns[turn].sampled, ends = [];
        for (let i = begin; i < end; ++i) {
          const chain = chain_of(member, k, i).filter(row => !["ratio", "share of the step", "KL term"].includes(row.name)
                                                             && !row.last && row.value !== undefined);
          ends.push(chain.at(-1)?.value ?? null);
        }
        return ends;
      })))""")
    for rows, shown in zip(groups, ends):
        for row, values in zip(rows, shown):
            if not row["valid"] or row.get("dropped"):
                continue
            expected = [row["advantage"][t] * row["weight"][t] for t, bit in enumerate(row["loss_mask"]) if bit]
            assert len(expected) == len(values), row["traj_id"]
            for value, number in zip(values, expected):
                assert abs(value - number) <= 1e-4 * (1e-9 + abs(number)), (row["traj_id"], value, number)
    assert page.locator("aside").is_hidden()
    opened.press("Escape", *["k"] * len(groups))
    included = next(n for n, row in enumerate(groups[0]) if row["valid"] and not row.get("dropped"))
    page.locator("article").nth(included).locator("i").first.click()
    assert page.locator("aside .chain tr").count() >= 2
    first = page.locator("aside .sidehead").text_content()
    opened.press("w")
    assert page.locator("aside .sidehead").text_content() != first
    opened.press("b")
    assert page.locator("aside .sidehead").text_content() == first
    link = page.evaluate("location.hash")
    opened.press("Escape")
    assert page.locator("aside").is_hidden()
    opened.press("j", "Enter")
    page.evaluate(f"location.hash = {json.dumps(link)}")
    page.wait_for_function(f"document.querySelector('aside .sidehead').textContent === {json.dumps(first)}")
    opened.press("Escape")


def check_methods(browser, run, step, scratch):
    """Two methods on the same rows: each one's credit is that of `carnot credit`, and places of opposite signs come first."""
    methods = ["grpo", "grpo + gigpo"]
    carnot("view", run, "--steps", step, "--output", scratch / "methods.html", "--methods", ", ".join(methods) + ", ppo")
    opened = Opened(browser, scratch / "methods.html")
    page = opened.page
    credit = page.evaluate("""[0, 1].map(method => Object.fromEntries(data.groups.flatMap(members_of).map(member =>
        [member.leaf.id, member.turns.map((_, k) => turn_credit(member, k, method))])))""")
    expected = []
    for method in methods:
        carnot("credit", run, "--step", step, "--method", method, "--output", scratch / "credit.jsonl")
        means = {}
        for line in (scratch / "credit.jsonl").read_text().splitlines():
            row = json.loads(line)
            for turn in row["turns"]:
                values = [row["advantage"][t] * row["weight"][t] for t in range(turn["start"], turn["end"])
                          if row["loss_mask"][t] and row["valid"]]
                means.setdefault(row["traj_id"], []).append(sum(values) / len(values) if values else None)
        expected.append(means)
    for shown, means in zip(credit, expected):
        assert shown.keys() == means.keys()
        for name, values in means.items():
            for a, b in zip(shown[name], values, strict=True):
                assert (a is None) == (b is None) and (a is None or abs(a - b) <= 1e-4 * (1e-6 + abs(b))), (name, a, b)
    assert "value: this field is missing" in page.locator("header").text_content()
    assert page.locator("select").nth(4).locator("option:disabled").count() == 1
    page.locator("select").nth(5).select_option("1")
    different = sum(a is not None and abs(a - b) > 1e-6 for name in expected[0]
                    for a, b in zip(expected[0][name], expected[1][name]))
    assert abs(page.locator(".differences tr").count() - min(different, 200)) <= 2, different
    if different:
        page.locator(".differences tr").first.click()
        opened.press("Enter")
        assert page.locator("aside .chain").count() == 2
    opened.press("Escape", "m")
    assert page.locator("select").nth(4).input_value() == "1"
    opened.close()


def check_trees(opened, groups):
    """A branched group is drawn with each turn once, and each leaf; others are not drawn."""
    page = opened.page
    opened.press("Escape", *["k"] * len(groups))
    for rows in groups:
        turns = {(row["tree"], tuple(row["token_ids"][: turn["end"]]))
                 for row in rows for turn in row["turns"]}
        branched = any(row["parent"] is not None for row in rows)
        assert opened.count(".trees circle") == (len(rows) if branched else 0)
        if branched:
            assert opened.count(".trees .branch") >= len(turns), (opened.count(".trees .branch"), len(turns))
            left = sum(row["parent"] is not None and row["branch_turn"] > 0 for row in rows)
            titles = "\n".join(page.locator(".trees title").all_text_contents())
            assert titles.count(" left ") == left, (titles, left)
        opened.press("j")


def check_budget(opened, groups):
    """The shares of the signal by role, turn and outcome, taken over advantage times weight, are those of the rows."""
    shown = opened.page.evaluate("budget_of(data.groups, at => at.advantage === null ? 0 : "
                                 "Math.abs(at.advantage * at.weight))")
    role, turns, outcome = [0.0] * 3, [0.0] * 5, [0.0] * 2
    for row in (row for rows in groups for row in rows if row["valid"] and not row.get("dropped")):
        for k, turn in enumerate(row["turns"]):
            for t in range(turn["start"], turn["end"]):
                if row["loss_mask"][t]:
                    size = abs(row["advantage"][t] * row["weight"][t])
                    role[{"action": 0, "think": 1}.get(row["segment"][t], 2)] += size
                    turns[min(k, 4)] += size
                    outcome[0 if row["success"] else 1] += size
    for sums, expected in zip((shown[0], shown[1], shown[3]), (role, turns, outcome)):
        for a, b in zip(sums, expected, strict=True):
            assert abs(a - b) <= 1e-3 * (1e-6 + sum(expected)), (sums, expected)
    assert opened.page.locator(".division").count() == (4 if sum(role) else 0)


def check_task(browser, run, step, scratch):
    """The same rows at two steps are one task at two places, with its success; ] and [ go from one to the other."""
    folder = scratch / "twice"
    (folder / "rollouts").mkdir(parents=True)
    shutil.copy(next(run.glob("checkpoints/*/tokenizer.json")), folder / "tokenizer.json")
    groups = rows_of(run, step)
    for number in (1, 2):
        lines = [json.dumps({**row, "step": number}) for rows in groups for row in rows]
        (folder / "rollouts" / f"step_{number}.jsonl").write_text("\n".join(lines) + "\n")
    carnot("view", folder)
    opened = Opened(browser, folder / "view.html")
    valid = [row for row in groups[0] if row["valid"]]
    success = round(100 * sum(row["success"] for row in valid) / len(valid))
    assert opened.count(".task tr") >= 2
    assert opened.page.locator(".task tr").first.locator("td").nth(2).text_content() == f"{success} %"
    first = opened.page.locator("h2").first.text_content()
    opened.press("]")
    assert opened.page.locator("h2").first.text_content() == first.replace("step 1", "step 2")
    opened.press("[")
    assert opened.page.locator("h2").first.text_content() == first
    opened.close()


def has_signal(rows):
    """Whether the rewards of the group differ, penalties included."""
    counted = [row for row in rows if row["valid"] and not row.get("dropped")]
    return len({round(row["score"] + sum(turn["penalty"] for turn in row["turns"]), 9) for row in counted}) > 1


def check_layout(opened, groups):
    """On a screen of 1440 px: four siblings, headers of one line, the group's rewards, and the list by their spread."""
    page = opened.page
    page.set_viewport_size({"width": 1440, "height": 900})
    edges = [box["x"] + box["width"] for box in (card.bounding_box() for card in page.locator("article").all())]
    assert sum(edge <= 1440 for edge in edges) >= min(4, len(edges)), edges
    heights = page.evaluate("[...document.querySelectorAll('summary')].map(summary => summary.offsetHeight)")
    assert len(set(heights)) == 1, heights
    assert page.locator(".controls").bounding_box()["height"] < 40, "the header has more than one line"
    signals = sum(map(has_signal, groups))
    assert opened.count("nav .signal") == signals, (opened.count("nav .signal"), signals)
    page.locator("select").nth(2).select_option("spread")
    marked = page.evaluate("[...document.querySelectorAll('nav a')].map(link => !!link.querySelector('.signal'))")
    assert marked == sorted(marked, reverse=True), marked
    page.locator("select").nth(2).select_option("step")


def hostile_copy(run, folder, step):
    """The step's rows with a hostile string in every string field, and in the conversation."""
    tokenizer = json.loads(next(run.glob("checkpoints/*/tokenizer.json")).read_text())
    ids = [tokenizer["model"]["vocab"][sign] for sign in "</script><script>alert(1)</script>"]
    (folder / "rollouts").mkdir(parents=True)
    shutil.copy(next(run.glob("checkpoints/*/tokenizer.json")), folder / "tokenizer.json")
    lines = []
    for n, rows in enumerate(rows_of(run, step)):
        for row in rows:
            for at, bit in enumerate(row["loss_mask"]):
                if bit:
                    row["token_ids"][at] = ids[at % len(ids)]
            row.update(uid=f"{HOSTILE} {n}", gts=[HOSTILE], answer=HOSTILE, info={HOSTILE: HOSTILE})
            row["traj_id"] += HOSTILE
            row["parent"], row["branch_turn"], row["tree"] = None, None, row["sibling"]
            row["measures"][HOSTILE] = 1
            for turn in row["turns"]:
                turn.update(tool=HOSTILE, status=HOSTILE)
            lines.append(json.dumps(row))
    (folder / "rollouts" / f"step_{step}.jsonl").write_text("\n".join(lines) + "\n")
    return len(rows_of(folder, step))


def main(run, picture):
    step = max(int(path.stem.split("_")[1]) for path in run.glob("rollouts/step_*.jsonl"))
    groups = rows_of(run, step)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        scratch = pathlib.Path(scratch)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        carnot("view", run, "--steps", step, "--output", scratch / "page.html")
        opened = Opened(browser, scratch / "page.html")
        check_texts(opened, groups)
        check_keys(opened, groups)
        check_layout(opened, groups)
        check_waterfall(opened, groups)
        check_trees(opened, groups)
        check_budget(opened, groups)
        if picture:
            opened.page.screenshot(path=picture)
        opened.close()
        check_methods(browser, run, step, scratch)
        check_task(browser, run, step, scratch)
        count = hostile_copy(run, scratch / "hostile", step)
        carnot("view", scratch / "hostile")
        opened = Opened(browser, scratch / "hostile" / "view.html", color_scheme="dark")
        assert opened.count("nav a") == count
        opened.press(*["j", "ArrowRight", "c", "Enter"] * count)
        assert "</script>" in opened.page.locator("main").text_content()
        assert "\x1b" not in opened.page.locator("body").text_content().replace("\\u001b", "")
        opened.close()
        browser.close()
    print(f"{len(groups)} groups of step {step}, and as many hostile ones, agree with the rows")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
