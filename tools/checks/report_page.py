#!/usr/bin/env python3
"""Opens a report with one difference in headless Chromium: its dot is drawn completely.

Run as tools/checks/view_page.py, with the same packages:
    python3 tools/checks/report_page.py
"""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile

from playwright.sync_api import sync_playwright

FIGURE = {"title": "One difference", "table": "means", "draw": "intervals", "x": "method", "y": ["difference"],
          "series": [], "x_axis": {}, "y_axis": {"low": -100, "high": 100}, "mark": 0}
# Left, top, right and bottom of the pixels in the colour of a dot without an interval.
BOUNDS = """canvas => {
  const {data, width} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height), xs = [], ys = [];
  for (let i = 0; i < data.length; i += 4)
    if (data[i] === 0x8a && data[i + 1] === 0x92 && data[i + 2] === 0x9c && data[i + 3] === 255)
      xs.push(i / 4 % width), ys.push(Math.floor(i / 4 / width));
  return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
}"""


def check(browser, html, path, difference):
    report = {"tables": {"means": [{"method": "aem", "difference": difference}]}, "figures": [FIGURE]}
    path.write_text(re.sub(r'(id="report">).*?(</script>)', lambda found: found[1] + json.dumps(report) + found[2], html,
                           count=1, flags=re.DOTALL))
    page = browser.new_page()
    page.goto(f"file://{path}")
    left, top, right, bottom = page.locator("canvas").first.evaluate(BOUNDS)
    assert abs((right - left) - (bottom - top)) <= 1, (difference, left, top, right, bottom)
    page.close()


def main():
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        subprocess.run(["build/carnot", "analyze", "aent-sparse", "seeds=1", "steps=2", "--output", scratch], check=True,
                       stdout=subprocess.DEVNULL)
        html = (pathlib.Path(scratch) / "aent-sparse.html").read_text()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for difference in (4.2, 0, 100, -100):
            check(browser, html, pathlib.Path(scratch) / "one.html", difference)
        browser.close()
    print("the dot of one difference is whole")


if __name__ == "__main__":
    main()
