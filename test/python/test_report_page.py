"""The report's page in a browser: it shows the data, by mouse, keyboard and address; nothing leaves it."""

import ast
import json
import random
import re
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from report_browser import ARGUMENTS, CHROMIUM, CONTRASTS, READ, Opened, check
from report_data import HOSTILE, cpu, empty, gpu

from deplo.report.page import SCRIPTS, VIEW, page
from deplo.report.page import __file__ as page_module

DATA = {"gpu": gpu, "cpu": cpu, "empty": empty}


@pytest.fixture(scope="module")
def tab():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield Opened(browser)
        browser.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")

    @cache
    def file(name):
        path = folder / f"{name}.html"
        path.write_text(page(DATA[name]()), encoding="utf-8")
        return path

    return file


@pytest.fixture
def report(tab, files):
    with tab.showing(files("gpu")) as found:
        yield found


def show_all(report):
    """Opens whatever can be opened, and points at whatever says more then."""
    report.js(
        """() => {
          const hidden = '.choices input:not(:disabled):not(:checked)';
          for (const each of document.querySelectorAll(hidden)) each.click();
          for (const each of document.querySelectorAll('details')) each.open = true;
        }"""
    )
    report.page.wait_for_timeout(30)  # `toggle` events come a little later


def test_the_page_needs_python_alone_and_is_the_same_each_time():
    text = page(gpu())
    assert text == page(gpu())
    imported = [
        node
        for node in ast.walk(ast.parse(Path(page_module).read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = {getattr(node, "module", None) or node.names[0].name for node in imported}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
    assert "</script><img" not in text
    with pytest.raises(ValueError, match="not JSON compliant"):
        page({**gpu(), "compile": {"name": "x", "seconds": float("nan"), "children": []}})


@pytest.mark.parametrize("name", DATA)
def test_every_figure_and_text_is_one_of_the_data(tab, files, name):
    data = DATA[name]()
    with tab.showing(files(name)) as report:
        for index in range(max(1, len(data["kernels"]))):
            if data["kernels"]:
                report.page.select_option("#kernel-choice", str(index))
            show_all(report)
            shown = report.js(READ)
            check(shown, data)
            paths = {figure[0] for figure in shown["figures"]}
            assert {"compile.seconds", "memory.arena_bytes", "kernels.length"} <= paths
            assert not data["kernels"] or f"kernels.{index}.threads" in paths
        speaking = "svg [tabindex], .flame [tabindex], button.choose"
        for index in range(report.js(f"() => document.querySelectorAll('{speaking}').length")):
            report.js(f"index => document.querySelectorAll('{speaking}')[index].focus()", index)
            if index % 5 == 0:
                check(report.js(READ), data)
        check(report.js(READ), data)


@pytest.mark.parametrize(
    "spoil",
    [
        "document.querySelector('main').append('42')",
        "document.querySelector('[data-path=\"compile.seconds\"]').textContent = '1.8 s'",
        "document.querySelector('[data-path=\"compile.seconds\"]').setAttribute('value', '1.8')",
        "document.querySelector('[data-text=\"target.name\"]').textContent = 'sm_80'",
        "document.querySelector('.line code').textContent += '1'",
    ],
)
def test_a_figure_that_is_not_of_the_data_is_found(report, spoil):
    check(report.js(READ), gpu())
    report.js(f"() => {{ {spoil} }}")
    with pytest.raises(AssertionError):
        check(report.js(READ), gpu())


def test_the_page_makes_no_markup_of_texts():
    for name in SCRIPTS:
        text = (VIEW / name).read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", text
        ), name
        assert set(re.findall(r"https?:[^\"]*", text)) <= {"http://www.w3.org/2000/svg"}, name
        assert 50 <= len(text.splitlines()) <= 400, name
    assert {"page.html", "page.css", *SCRIPTS} == {path.name for path in VIEW.iterdir()}


def test_all_parts_of_the_data_are_shown(report):
    """Each list of the selected kernel, and of the program, has its rows or its shapes."""
    report.page.select_option("#kernel-choice", "1")
    show_all(report)
    paths = {path for path, *_ in report.js(READ)["figures"]}
    texts = {path for path, _ in report.js(READ)["texts"]}
    kernel = gpu()["kernels"][1]
    for index, step in enumerate(kernel["steps"]):
        assert f"kernels.1.steps.{index}.pass" in texts
        assert f"kernels.1.steps.{index}.reason" in texts
        assert step["line"] is None or f"kernels.1.steps.{index}.line" in texts
    assert len(report.page.query_selector_all(".diff")) == 2
    for index in range(len(kernel["accesses"])):
        assert f"kernels.1.accesses.{index}.cost" in paths
    for index in range(len(kernel["timeline"]["events"])):
        assert f"kernels.1.timeline.events.{index}.begin" in paths
    assert report.js("() => document.querySelectorAll('.event').length") == len(
        kernel["timeline"]["events"]
    )
    for index in range(len(gpu()["memory"]["buffers"])):
        assert f"memory.buffers.{index}.name" in texts
    for index in range(len(gpu()["decisions"])):
        assert f"decisions.{index}.reason" in texts
    for name in ("registers", "spill_loads", "shared_bytes"):
        assert f"kernels.1.resources.{name}" in paths
    assert "calls.0.reason" in texts
    assert "run.eager_seconds" in paths
    assert report.js("() => document.querySelectorAll('.node').length") == len(
        gpu()["graph"]["nodes"]
    )
    assert report.js("() => document.querySelectorAll('.edge').length") == len(
        gpu()["graph"]["edges"]
    )
    assert report.js("() => document.querySelectorAll('.point[data-measured]').length") == 1


def test_a_click_on_a_kernel_selects_it_everywhere(report):
    assert report.selected() == "k_norm"
    report.page.click(".node.kernel >> nth=1")
    assert report.selected() == "k_mm"
    assert report.js("() => location.hash") == "#k_mm"
    assert report.js("() => document.getElementById('kernel-choice').value") == "1"
    assert report.js("() => document.querySelectorAll('.node.selected').length") == 2, (
        "two launches"
    )
    assert report.page.inner_text("table.kernels tr.selected a") == "k_mm"
    assert "k_mm" in report.page.inner_text(".columns")
    assert "k_norm(" not in report.page.inner_text(".columns")
    report.page.click("table.kernels a >> nth=0")
    assert report.selected() == "k_norm"
    report.page.click("#bar [aria-label='Next kernel']")
    assert report.selected() == "k_mm"
    report.page.go_back()
    report.page.wait_for_function("() => location.hash === '#k_norm'")
    assert report.selected() == "k_norm"


CROSSINGS = """() => {
  const boxes = [...document.querySelectorAll('.node > rect')].map((each) => each.getBBox());
  const apart = (a, b) => a.x + a.width <= b.x || b.x + b.width <= a.x
    || a.y + a.height <= b.y || b.y + b.height <= a.y;
  const found = [];
  boxes.forEach((a, i) => boxes.forEach((b, j) => { if (i < j && !apart(a, b)) found.push([i, j]); }));
  document.querySelectorAll('.edge path:not(.tip)').forEach((path, edge) => {
    const length = path.getTotalLength();
    for (let at = 0; at <= length; at += 5) {
      const {x, y} = path.getPointAtLength(at);
      const inside = (b) => x > b.x + 1 && x < b.x + b.width - 1 && y > b.y + 1 && y < b.y + b.height - 1;
      if (boxes.some(inside)) found.push(edge);
    }
  });
  return found;
}"""


def test_boxes_of_the_graph_do_not_touch_and_no_edge_passes_one(tab, tmp_path):
    choose = random.Random(0)
    kinds = ["input"] * 4 + ["kernel"] * 30 + ["result"] * 2
    names = {"input": "x", "kernel": "k_norm", "result": "gelu"}
    nodes = [
        {"id": i, "kind": kind, "name": names[kind], "type": "4xf32", "bytes": 16}
        for i, kind in enumerate(kinds)
    ]
    reads = [(choose.randrange(i), i) for i in range(4, 36) for _ in range(2)]
    edges = [
        {"from": a, "to": b, "name": f"b{a}", "type": "4xf32", "bytes": 16}
        for a, b in sorted(reads)
    ]
    path = tmp_path / "graph.html"
    path.write_text(page({**gpu(), "graph": {"nodes": nodes, "edges": edges}}), encoding="utf-8")
    with tab.showing(path) as report:
        assert report.js("() => document.querySelectorAll('.node').length") == 36
        assert report.js(CROSSINGS) == []
        report.js("() => document.querySelector('.node > rect').setAttribute('width', 4000)")
        assert report.js(CROSSINGS) != []


def test_an_address_names_a_kernel(tab, files):
    with tab.showing(files("gpu"), "#k_mm") as report:
        assert report.selected() == "k_mm"
        report.js("name => { location.hash = encodeURIComponent(name); }", HOSTILE)
        report.page.wait_for_function(
            "() => document.getElementById('kernel-choice').value === '2'"
        )
        assert report.selected() == HOSTILE
        report.js("() => { location.hash = '%E0%A4%A'; }")
        report.js("() => { location.hash = 'no-such-kernel'; }")
        assert report.selected() == HOSTILE


def marked(report):
    """Level -> the texts of the lines that are marked in it."""
    rows = report.js(
        """() => [...document.querySelectorAll('.column:not([hidden]) .line.mark')]
          .map((line) => [line.closest('.column').querySelector('h4'), line.querySelector('code')])
          .map((pair) => pair.map((each) => each.textContent.trim()))"""
    )
    found: dict[str, list[str]] = {}
    for level, text in rows:
        found.setdefault(level, []).append(text)
    return found


def test_a_line_marks_what_it_came_from_and_what_it_became(report):
    report.page.select_option("#kernel-choice", "1")
    show_all(report)
    line = report.page.locator(".column[data-level='4'] .line", has_text="math.erf")
    line.hover()
    found = marked(report)
    assert found["Source"] == ["return F.gelu(h)"]
    assert [text.split(" ")[0] for text in found["Torch IR"]] == ["%gelu"]
    assert [text.split(" ")[0] for text in found["Tensor IR"]] == ["%erf", "%gelu"]
    assert found["Tile IR"] == ["%erf = math.erf %acc : f32"], "not what its parents also became"
    assert found["SASS"] == ["/*0040*/ STG.E [R2.64], R8 ;"]
    assert len(found["CUDA"]) == 1
    report.page.locator("h1").hover()
    assert marked(report) == {}
    line.click()
    report.page.locator("h1").hover()
    assert marked(report) == found, "a click pins"
    other = report.page.locator(".column[data-level='0'] .line", has_text="h = h @ self.w")
    other.hover()
    assert marked(report) == found
    other.click()
    assert [text.split(" ")[0] for text in marked(report)["Tile IR"]][:2] == [
        "%w_shared",
        "scf.for",
    ]
    report.page.keyboard.press("Escape")
    assert marked(report) == {}


def test_events_and_accesses_mark_their_lines(report):
    report.page.select_option("#kernel-choice", "1")
    show_all(report)
    report.page.locator(".event >> nth=0").click()
    assert len(marked(report)["Tile IR"]) == 6, "all of the product"
    assert (
        report.page.inner_text(".line.main")
        .strip()
        .endswith("kernel.async_copy %w[%k, %j] to %w_shared : 16")
    )
    report.page.locator("#accesses button.to-line >> nth=1").click()
    assert (
        report.page.inner_text(".line.main").strip().endswith("%a = loop.load %w_shared[%lane, %k]")
    )


def test_a_timeline_is_zoomed_by_keys(report):
    report.page.select_option("#kernel-choice", "1")
    report.page.focus(".event")
    report.page.keyboard.press("ArrowRight")
    name = report.page.inner_text("#timeline .readout")
    assert name.startswith("copies to shared memory: kernel.async_copy w_shared, from 43 to 128")
    width = report.js("() => document.querySelector('.timeline svg').width.baseVal.value")
    report.page.keyboard.press("+")
    assert (
        report.js("() => document.querySelector('.timeline svg').width.baseVal.value") == 2 * width
    )
    assert report.page.inner_text("#timeline .readout") == name
    report.page.keyboard.press("Enter")
    assert report.page.inner_text(".line.main.pinned code").strip().startswith("kernel.async_copy")
    assert report.js("() => document.activeElement.closest('.column').dataset.level") == "5"


def test_turns_and_sectors_are_pictured(report):
    report.page.select_option("#kernel-choice", "1")
    turns = report.js(
        "() => [...document.querySelectorAll('.cell .tick')].map((text) => Number(text.textContent))"
    )
    cost = gpu()["kernels"][1]["accesses"][1]["cost"]
    assert max(turns) == cost
    assert len(turns) == 32
    report.page.click("button.choose >> nth=0")
    assert report.js("() => document.querySelectorAll('.touched').length") == 32
    assert report.js("() => document.querySelectorAll('.grid .apart').length") == 7, (
        "eight runs of two sectors"
    )
    report.page.click("button.choose >> nth=2")
    assert report.js("() => document.querySelectorAll('.touched').length") == 31, (
        "a lane does nothing"
    )


def test_the_keyboard_alone_does_it_all(report):
    press = report.page.keyboard.press
    press("Tab")
    assert report.js("() => document.activeElement.className") == "skip"
    press("Enter")
    assert report.js("() => document.activeElement.id") == "main"
    press("Tab")
    assert report.js("() => document.activeElement.getAttribute('class')").startswith("node kernel")
    press("ArrowDown")
    press("Enter")
    assert report.selected() == "k_mm"
    seen = []
    for _ in range(120):
        press("Tab")
        seen.append(report.js(FOCUSED))
        if seen[-1] is None:
            break
    assert None in seen, "Tab is never caught"
    assert [each for each in seen if each and not each[1]] == [], "what has the focus shows it"
    sections = list(dict.fromkeys(each[0] for each in seen if each))
    names = (
        "graph",
        "texts",
        "schedule",
        "accesses",
        "timeline",
        "roofline",
        "memory",
        "compile",
        "decisions",
    )
    assert [name for name in sections if name in names] == list(names)


FOCUSED = """() => {
  const focused = document.activeElement;
  if (!focused || focused === document.body) return null;
  const accent = getComputedStyle(document.querySelector('a[href]')).color;
  const shapes = [focused, ...focused.querySelectorAll('rect, circle')].map((each) => getComputedStyle(each));
  const lined = (style) => style.outlineStyle !== 'none' && style.outlineWidth !== '0px';
  const shown = shapes.some((style) => lined(style) || style.stroke === accent);
  return [focused.closest('section, header')?.id, shown];
}"""


def test_lines_are_followed_by_arrow_keys(report):
    press = report.page.keyboard.press
    report.page.select_option("#kernel-choice", "1")
    show_all(report)
    report.page.focus(".column[data-level='4'] .lines")
    press("End")
    press("ArrowUp")
    assert report.page.inner_text(".line.main code").strip() == "loop.store %gelu, %out[%i, %j]"
    press("ArrowRight")
    level = "() => document.activeElement.closest('.column').dataset.level"
    assert report.js(level) == "5"
    assert report.page.inner_text(".line.main code").strip().startswith("%erf"), (
        "the first that it became"
    )
    press("Enter")
    press("ArrowLeft")
    assert report.js(level) == "4"
    assert report.page.inner_text(".line.main.pinned code").strip().startswith("%erf")
    press("Escape")
    assert marked(report) == {}


def test_a_part_of_the_flame_graph_is_shown_alone(report):
    report.page.click(".part", position={"x": 5, "y": 5})
    report.page.focus(".part")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
        report.page.keyboard.press(key)
    assert report.page.inner_text(".part >> nth=0") == "loop-to-tile 700 ms"
    assert len(report.page.query_selector_all(".part")) == 3
    report.page.keyboard.press("Escape")
    assert report.page.inner_text(".part >> nth=0") == "deplo.compile 1.9 s"


def test_decisions_are_filtered(report):
    rows = "table.decisions tbody tr"
    assert len(report.page.query_selector_all(rows)) == 4
    report.page.fill("#filter", "FUSE elementwise")
    assert report.page.inner_text(rows).split("\t")[:2] == ["fuse-loops", "k_mm"]
    report.page.fill("#filter", "")
    report.page.select_option("#outcome", "declined")
    assert len(report.page.query_selector_all(rows)) == 2
    report.page.check("#mine")
    assert len(report.page.query_selector_all(rows)) == 1
    report.page.select_option("#kernel-choice", "2")
    assert report.page.inner_text("#decisions [role=status]") == "No decision matches."


def test_hostile_texts_are_texts(report):
    show_all(report)
    report.page.select_option("#kernel-choice", "2")
    assert report.js("() => document.querySelectorAll('img, b b, i i, main script').length") == 0
    assert report.page.inner_text("h1") == "model.py:MLP <b>&amp;</b>"
    assert report.page.title() == "model.py:MLP <b>&amp;</b>: deplo"
    assert "<img src=x onerror=alert(2)>" in report.page.inner_text(".columns")


def test_the_policy_lets_nothing_out(report):
    blocked = report.js(
        """async () => {
          const blocked = [];
          const note = (event) => blocked.push(event.effectiveDirective);
          document.addEventListener('securitypolicyviolation', note);
          await fetch('http://127.0.0.1:9/').catch(() => null);
          new Image().src = 'http://127.0.0.1:9/x.png';
          const script = Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'});
          document.body.append(script);
          await new Promise((done) => setTimeout(done, 100));
          return [blocked.sort(), window.ran];
        }"""
    )
    assert blocked == [["connect-src", "img-src", "script-src-elem"], None]
    assert all("Content Security Policy" in complaint for complaint in report.complaints)
    report.complaints.clear()
    del report.requests[1:]


@pytest.mark.parametrize("name", DATA)
def test_widths_and_colours(tab, files, name):
    with tab.showing(files(name)) as report:
        if name == "gpu":
            report.page.select_option("#kernel-choice", "1")
        show_all(report)
        for width, scheme in ((1400, "light"), (1400, "dark"), (600, "dark"), (600, "light")):
            report.look(width, scheme)
            assert report.js("() => document.documentElement.scrollWidth") == width, "none sideways"
            assert report.js(CONTRASTS) == []
            ground = report.js("() => getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, ground[4:-1].split(","))) < 200) == (scheme == "dark")
        report.js("() => { document.querySelector('h1').style.color = '#999999'; }")
        assert [text for text, _ in report.js(CONTRASTS)] == [DATA[name]()["program"]]


def test_what_is_no_text_has_a_name(report):
    """Pictures, controls and sections are named for those who cannot see them."""
    nameless = report.js(
        """() => {
          const all = 'svg, section, nav, button, input, select, [role=listbox], [role=button], [role=group]';
          const named = (each) => each.getAttribute('aria-label') || each.getAttribute('aria-labelledby')
            || each.textContent.trim() || each.labels?.length;
          const found = [...document.querySelectorAll(all)].filter((each) => !named(each));
          return found.map((each) => each.outerHTML);
        }"""
    )
    assert nameless == []
    assert report.js("() => document.querySelectorAll('svg:not([role])').length") == 0
    assert report.js("() => document.documentElement.lang") == "en"
    levels = report.js(
        "() => [...document.querySelectorAll('h1, h2, h3, h4')].map((each) => Number(each.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_long_texts_stay_fast(tab, tmp_path):
    data = json.loads(json.dumps(gpu()))
    sass = data["stages"][-1]
    count = 50_000
    sass["lines"] = [f"        /*{16 * line:05x}*/ FFMA R8, R4, R6, R8 ;" for line in range(count)]
    sass["from"] = [[9] for _ in range(count)]
    sass["kernels"] = {"k_mm": [[0, count]]}
    path = tmp_path / "long.html"
    path.write_text(page(data), encoding="utf-8")
    with tab.showing(path) as report:
        show_all(report)
        seconds = report.js(
            """() => {
              const begin = performance.now();
              const select = document.getElementById('kernel-choice');
              select.value = '1';
              select.dispatchEvent(new Event('change'));
              document.querySelector(".column[data-level='6'] .line[data-line='9']").click();
              return (performance.now() - begin) / 1000;
            }"""
        )
        assert seconds < 2
        assert report.js("() => document.querySelectorAll('.line').length") < 1000
        report.page.focus(".column[data-level='7'] .lines")
        report.page.keyboard.press("End")
        report.page.wait_for_function("() => document.querySelector(\".line[data-line='49999']\")")
