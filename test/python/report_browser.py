"""Opens a report's page in Chromium without a screen, and reads off it what it shows."""

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
"""The path of a browser; None if there is none."""

ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


class Opened:
    """A tab with a page, and what it said and asked for meanwhile."""

    def __init__(self, browser: Any):
        self.page = browser.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "dialog", lambda dialog: (self.complaints.append("a dialog"), dialog.dismiss())
        )
        self.page.on("request", lambda request: self.requests.append(request.url))

    def js(self, script: str, *argument: Any) -> Any:
        return self.page.evaluate(script, *argument)

    def look(self, width: int = 1400, scheme: str = "light") -> None:
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")

    def selected(self) -> str:
        return self.page.inner_text("#kernel-title code")

    @contextmanager
    def showing(self, path: Path, hash: str = "") -> Iterator["Opened"]:
        """Shows a file anew; afterwards, nothing may have been complained of or left the page."""
        self.page.goto("about:blank")
        self.complaints.clear()
        self.requests.clear()
        self.look()
        self.page.goto(f"file://{path}{hash}")
        self.page.wait_for_selector("html[data-ready]", state="attached")
        yield self
        assert self.complaints == []
        assert {url.partition("#")[0] for url in self.requests} == {f"file://{path}"}


READ = """() => {
  const found = {figures: [], texts: [], lines: [], diffs: [], stray: []};
  for (const each of document.querySelectorAll('[data-path]')) {
    const {path, unit} = each.dataset;
    found.figures.push([path, unit, each.getAttribute('value'), each.textContent]);
  }
  for (const each of document.querySelectorAll('[data-text]')) {
    found.texts.push([each.dataset.text, each.textContent]);
  }
  for (const each of document.querySelectorAll('.line[data-line]')) {
    const level = Number(each.closest('.column').dataset.level);
    found.lines.push([level, Number(each.dataset.line), each.querySelector('code').textContent]);
  }
  found.diffs = [...document.querySelectorAll('.diff')].map((diff) => diff.textContent);
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const {parentElement: parent, data} = walk.currentNode;
    const known = parent.closest('script, [data-path], [data-text], .line code, .diff, .tick');
    if (/[0-9]/.test(data) && !known) found.stray.push(data);
  }
  return found;
}"""
"""All that the page shows of the data, and texts with digits that are neither of the data nor of a scale."""


def at(data: Any, path: str) -> Any:
    """The value of the data at a path of the page, which may end in `length`."""
    for step in path.split("."):
        if isinstance(data, list):
            data = len(data) if step == "length" else data[int(step)]
        else:
            data = None if data is None else data[step]
    return data


UNITS = {
    **{
        "": 1.0,
        "%": 0.01,
        "B": 1.0,
        "KiB": 2.0**10,
        "MiB": 2.0**20,
        "GiB": 2.0**30,
        "TiB": 2.0**40,
    },
    **{"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12},
    **{"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15},
    **{"B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12, "PB/s": 1e15},
    **{"op/s": 1.0, "kop/s": 1e3, "Mop/s": 1e6, "Gop/s": 1e9, "Top/s": 1e12, "Pop/s": 1e15},
}


def read_figure(text: str) -> float:
    """The value that a figure says: the inverse of the page's `format`."""
    match = re.fullmatch(r"(-?[0-9.,]+(?:e[-+]?[0-9]+)?) ?(\D*)", text)
    assert match, text
    return float(match[1].replace(",", "")) * UNITS[match[2]]


def check(shown: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Every figure and text that is shown is the data's, and there are no others."""
    assert shown["stray"] == []
    for path, unit, value, text in shown["figures"]:
        known = at(data, path)
        if known is None:
            assert (value, text) == ("", "not known"), path
            continue
        assert float(value) == known, path
        assert abs(read_figure(text) - known) <= 0.006 * abs(known), (path, unit, text, known)
    for path, text in shown["texts"]:
        known = at(data, path)
        cut = text[-1] == "…" and known.startswith(text[:-1])
        assert text == known or cut or (text[0] == "…" and known.endswith(text[1:])), path
    sources = [line for source in data["sources"] for line in source["lines"]]
    levels = [sources, *(stage["lines"] for stage in data["stages"])]
    for level, line, text in shown["lines"]:
        assert text == levels[level][line]
    steps = [step for kernel in data["kernels"] for step in kernel["steps"] if step["diff"]]
    assert set(shown["diffs"]) <= {"".join(f"{line}\n" for line in step["diff"]) for step in steps}


CONTRASTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const light = (color) => {
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = [...color].slice(0, 3).map((c) => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const group = each.closest('g.node, g.buffer, g.event, g.cell');
      const rect = group && group.querySelector('rect');
      if (rect) return rgba(getComputedStyle(rect).fill);
      const color = rgba(getComputedStyle(each).backgroundColor);
      if (color[3] === 255) return color;
    }
    return rgba('white');
  };
  const low = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    const unread = element.closest('script, noscript, :disabled, option') || !element.checkVisibility();
    if (!walk.currentNode.data.trim() || unread) continue;
    const style = getComputedStyle(element);
    const drawn = element.closest('svg') && !element.closest('foreignObject');
    const [text, behind] = [light(rgba(drawn ? style.fill : style.color)), light(ground(element))];
    const ratio = (Math.max(text, behind) + 0.05) / (Math.min(text, behind) + 0.05);
    if (ratio < 4.5) low.push([walk.currentNode.data, Math.round(ratio * 100) / 100]);
  }
  return low;
}"""
"""The texts whose contrast is below 4.5, with it."""
