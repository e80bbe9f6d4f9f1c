"""Pages of `carnot view` in headless Chromium: keys are pressed, and what is shown is compared with the rows.

    python3 page_test.py CARNOT WORK_FOLDER [RUN [PICTURE.png]]

Needs Debian's package `chromium`, and a Python with playwright (tools/install_test_packages.sh). Without RUN, a run
folder, small runs are trained. One page is of the run, one of a copy of its rows in which every string is hostile, one
is served while the run seems to go on. PICTURE is a screenshot of the first page.
"""

import atexit
import json
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\x1b[2J\u202e"


CARNOT = sys.argv[1]
RECIPE = """
run_folder: {folder}
env: {{name: search_qa, train_worlds: 1, held_out_worlds: 1}}
model: {{hidden_size: 64, intermediate_size: 128, num_layers: 2, num_heads: 2, num_kv_heads: 1, head_dim: 32}}
sft: {{steps: 300, learning_rate: 4e-3, batch_tokens: 2048}}
method: {method}
rollout: {{group_size: 4}}
train: {{steps: 3, groups_per_step: 4, mini_batches: 2, save_every: 1, max_checkpoints: 0}}
eval: {{tasks: 20, every: 1}}
"""


def carnot(*arguments):
    subprocess.run([CARNOT, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def rows_of(run, step):
    groups = {}
    for line in (run / "rollouts" / f"step_{step}.jsonl").read_text().splitlines():
        row = json.loads(line)
        groups.setdefault(row["uid"], []).append(row)
    return list(groups.values())


class Opened:
    """A page, a file's or a server's, with its errors, dialogs and outside requests."""

    def __init__(self, browser, path, **settings):
        address = path if isinstance(path, str) else f"file://{path.resolve()}"
        own = address if isinstance(path, str) else "file:"
        self.page = browser.new_page(viewport={"width": 1500, "height": 900}, **settings)
        self.problems = []
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: self.problems.append("a dialog"))
        self.page.on("request", lambda request: request.url.startswith(own) or self.problems.append(request.url))
        self.page.goto(address)

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def count(self, selector):
        return self.page.locator(selector).count()

    def close(self):
        assert not self.page.evaluate("window.hacked"), "a script of the rows has run"
        assert not self.problems, self.problems
        self.page.close()


def wait_for(page, expression):
    """Until it is true. The page's policy allows no eval, which wait_for_function() uses."""
    for _ in range(600):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never true: {expression}")


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
    assert opened.page.evaluate("state.groups.length") == successes, successes
    page.locator("select").nth(1).select_option("")
    opened.press("/")
    page.keyboard.type("a string that does not occur")
    assert opened.page.evaluate("state.groups.length") == 0 and opened.count("nav a") == 0 and opened.count("article") == 0
    page.locator("input.search").fill("")
    assert opened.page.evaluate("state.groups.length") == len(groups)


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
    included = next(n for n, row in enumerate(groups[0]) if row["valid"] and not row.get("dropped") and sum(row["loss_mask"]) > 1)
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
    wait_for(page, f"document.querySelector('aside .sidehead').textContent === {json.dumps(first)}")
    opened.press("Escape")


def turn_means(run, step, method, scratch):
    """Mean advantage times weight of each turn, by trajectory, as `carnot credit` computes them."""
    name, _, settings = method.partition(" [")
    carnot("credit", run, "--step", step, "--method", name, "--output", scratch / "credit.jsonl",
           *settings.rstrip("]").split())
    means = {}
    for line in (scratch / "credit.jsonl").read_text().splitlines():
        row = json.loads(line)
        for turn in row["turns"]:
            values = [row["advantage"][t] * row["weight"][t] for t in range(turn["start"], turn["end"])
                      if row["loss_mask"][t] and row["valid"]]
            means.setdefault(row["traj_id"], []).append(sum(values) / len(values) if values else None)
    return means


def check_credit(page, run, step, methods, scratch):
    """The page has the credit of `carnot credit` for each method; returns it."""
    credit = page.evaluate("""([step, count]) => Array.from({length: count}, (_, method) => Object.fromEntries(data.groups
        .filter(group => group.step === step).flatMap(members_of).map(member =>
        [member.leaf.id, member.turns.map((_, k) => turn_credit(member, k, method))])))""".strip(), [step, len(methods)])
    expected = [turn_means(run, step, method, scratch) for method in methods]
    for shown, means in zip(credit, expected, strict=True):
        assert shown.keys() == means.keys()
        for name, values in means.items():
            for a, b in zip(shown[name], values, strict=True):
                assert (a is None) == (b is None) and (a is None or abs(a - b) <= 1e-4 * (1e-6 + abs(b))), (name, a, b)
    return expected


def check_methods(browser, run, step, scratch):
    """Two methods on the same rows: each one's credit is that of `carnot credit`, and places of opposite signs come first."""
    methods = ["grpo", "grpo + gigpo"]
    carnot("view", run, "--steps", step, "--output", scratch / "methods.html", "--methods", ", ".join(methods) + ", ppo")
    opened = Opened(browser, scratch / "methods.html")
    page = opened.page
    expected = check_credit(page, run, step, methods, scratch)
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
    shown = opened.page.evaluate("""() => {
        const sums = no_sums();
        for (const group of data.groups)
          add_budget(sums, group, at => at.advantage === null ? 0 : Math.abs(at.advantage * at.weight));
        return sums;
      }""")
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
    assert opened.page.locator(".division").count() in ((4, 5) if sum(role) else (0,))


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


def check_curves(opened, run):
    """Each curve has a point for every step that has its metric, with its value; a click goes to the step."""
    curves = {curve["name"]: curve["points"] for curve in opened.page.evaluate("data.curves")}
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    scores = [[row["step"], row["critic/score/mean"]] for row in metrics if "critic/score/mean" in row]
    assert len(curves["score"]) == len(scores)
    for (step, value), (expected_step, expected) in zip(curves["score"], scores):
        assert step == expected_step and abs(value - expected) <= 1e-4 * (1e-6 + abs(expected))
    for _, value, low, high in curves["evaluation"]:
        assert low <= value <= high
    assert opened.count(".curve") == len(curves)


def check_after(browser, run, scratch):
    """Tokens under the weights after their step, as the next step's forward pass would have them: what the step moved."""
    carnot("view", run, "--after", "--steps", "1,3", "--output", scratch / "after.html")
    opened = Opened(browser, scratch / "after.html")
    page = opened.page
    assert page.evaluate("data.after") == {"1": 1, "3": 3}
    moved = page.evaluate("""data.groups.flatMap(members_of).flatMap(member => {
        const all = [];
        each_sampled(member, at => all.push([at.moved, at.logp_after, at.logp_old ?? at.logp_rollout, push_of(at)]));
        return all;
      }).filter(([moved]) => moved !== null)""")
    assert moved
    for change, after, old, _ in moved:
        assert abs(change - (after - old)) < 1e-9
    pushed = sum(abs(push) for change, _, _, push in moved if change * push > 0)
    against = sum(abs(push) for change, _, _, push in moved if change * push < 0)
    assert pushed > against, (pushed, against)
    assert "as pushed" in page.locator(".budget").text_content()
    opened.close()


def check_agreement(browser, run, step, scratch):
    """Measured advantages that are a method's own credit agree with it fully; another method's correlation is Pearson's."""
    rows = [json.loads(line) for line in (run / "rollouts" / f"step_{step}.jsonl").read_text().splitlines()]
    means = turn_means(run, step, "grpo", scratch)
    for row in rows:
        row["advantage_oracle"] = [None] * len(row["token_ids"])
        for turn, value in zip(row["turns"], means[row["traj_id"]]):
            for t in range(turn["start"], turn["end"]):
                row["advantage_oracle"][t] = value if row["loss_mask"][t] else None
    path = scratch / "measured.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    carnot("view", path, "--methods", "oracle, grpo, grpo + gigpo")
    opened = Opened(browser, path.with_suffix(".html"))
    shown = [text.split(": ", 1) for text in opened.page.locator(".agreement span").all_text_contents()[1:]]
    assert [name for name, _ in shown] == ["oracle", "grpo", "grpo + gigpo"], shown
    for method, (_, text) in enumerate(shown):
        measured, credit = zip(*opened.page.evaluate(f"measured_pairs(data.groups, {method})"))
        if len(set(measured)) > 1 and len(set(credit)) > 1:
            r = statistics.correlation(measured, credit)
            assert abs(float(text.split()[1].rstrip(",")) - r) < 0.006, (text, r)
            # Leaves share the measured advantages of shared turns, but not a method's credit.
            assert method == 2 or (method == 1 and any(row["parent"] for row in rows)) or r > 0.9999, (method, r)
    opened.close()


class Server:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([CARNOT, "view", *map(str, arguments), "--follow", "--port", "0"],
                                        stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        self.address = self.process.stdout.readline().split()[0]

    def end(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait() == 0, self.process.returncode


def check_follow(browser, run, scratch):
    """Steps appear as their files do; typed methods and sliders give the credit of `carnot credit`; a wrong method is
    refused and changes nothing; the page outlives its server."""
    growing = scratch / "growing"
    shutil.copytree(run, growing)
    for path in [growing / "summary.json", *growing.glob("rollouts/*")]:
        path.unlink()
    server = Server(growing)
    opened = Opened(browser, server.address)
    page = opened.page
    wait_for(page, "ui.running.textContent === 'running'")
    assert opened.count("article") == 0
    for step in (1, 2):
        shutil.copy(run / "rollouts" / f"step_{step}.jsonl", growing / "rollouts")
        wait_for(page, f"data.groups.some(group => group.step === {step})")
    groups = rows_of(run, 1)
    page.locator("select").first.select_option("1")
    check_texts(opened, groups)
    field = page.locator("input.methods")
    for methods in ("grpo, grpo + gigpo", "rloo, grpo"):
        field.fill(methods)
        field.press("Enter")
        wait_for(page, f"data.methods.map(method => method.name).join(', ') === {json.dumps(methods)}")
        check_credit(page, run, 1, methods.split(", "), scratch)
    page.locator(".live summary").click()
    page.evaluate("change_number(1, 'grpo.epsilon', 0.5)")
    wait_for(page, "data.methods[1].name === 'grpo [grpo.epsilon=0.5]'")
    check_credit(page, run, 1, ["rloo", "grpo [grpo.epsilon=0.5]"], scratch)
    field.fill("grpo + gropo")
    field.press("Enter")
    wait_for(page, "!ui.problem.hidden")
    assert "gropo" in page.locator(".problem").text_content()
    assert page.evaluate("data.methods.length") == 2
    opened.problems.clear()  # the browser logs the refused request
    shutil.copy(run / "summary.json", growing)
    wait_for(page, "ui.running.textContent === 'finished'")
    server.end()
    wait_for(page, "ui.running.textContent === 'carnot view has ended'")
    opened.problems.clear()  # and the one that nothing answers
    opened.press("Escape", "j", "Enter")
    assert page.locator("aside .chain").count() > 0
    opened.close()


def trained(folder, method):
    """A small run by this method."""
    shutil.rmtree(folder, ignore_errors=True)
    recipe = folder.with_suffix(".yaml")
    recipe.parent.mkdir(parents=True, exist_ok=True)
    recipe.write_text(RECIPE.format(folder=folder, method=method))
    carnot("train", recipe)
    return folder


def check_run(browser, run, scratch, picture):
    step = max(int(path.stem.split("_")[1]) for path in run.glob("rollouts/step_*.jsonl"))
    groups = rows_of(run, step)
    carnot("view", run, "--steps", step, "--output", scratch / "page.html")
    opened = Opened(browser, scratch / "page.html")
    check_texts(opened, groups)
    check_keys(opened, groups)
    check_layout(opened, groups)
    check_waterfall(opened, groups)
    check_trees(opened, groups)
    check_budget(opened, groups)
    check_curves(opened, run)
    if picture:
        opened.page.screenshot(path=picture)
    opened.close()
    check_methods(browser, run, step, scratch)
    check_task(browser, run, step, scratch)
    count = hostile_copy(run, scratch / "hostile", step)
    carnot("view", scratch / "hostile")
    opened = Opened(browser, scratch / "hostile" / "view.html", color_scheme="dark")
    assert opened.page.evaluate("state.groups.length") == count
    opened.press(*["j", "ArrowRight", "c", "Enter"] * count)
    assert "</script>" in opened.page.locator("main").text_content()
    assert "\x1b" not in opened.page.locator("body").text_content().replace("\\u001b", "")
    opened.close()
    check_agreement(browser, run, step, scratch)
    check_after(browser, run, scratch)
    check_follow(browser, run, scratch)
    print(f"{len(groups)} groups of step {step} of {run.name}, and as many hostile ones, agree with the rows")


def main(folder, run, picture):
    runs = [run] if run else [trained(folder / "grpo", "grpo"), trained(folder / "tree_grpo", "tree_grpo")]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for one in runs:
            with tempfile.TemporaryDirectory() as scratch:
                check_run(browser, one, pathlib.Path(scratch), picture)
        browser.close()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None,
         sys.argv[4] if len(sys.argv) > 4 else None)
