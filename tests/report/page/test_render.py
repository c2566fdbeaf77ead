"""The page as text, and as a browser shows it."""

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import torch
from browser import MISSING, Browser
from made_runs import make_config, make_result
from page_boxes import faults
from PIL import Image, ImageChops
from torch.nn import functional as F

from bgd.experiments.declaration import Experiment
from bgd.report.page import SNIPPET, render_page
from bgd.report.page.render import render_pages
from bgd.report.section import make_sections
from bgd.report.summary import Unfinished, compare

NASTY = (
    '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">" onmouseover="window.hacked = 1'
    '\' onload=\'window.hacked = 1 --> ]]> </title></svg></style> {{ 7 * 7 }} id="c1" d="M 1 2 3" javascript:hacked()'
)


@pytest.fixture(scope="module")
def made():
    """Three settings and a long label: the widest content of a page."""
    labels = ["BGD", "SGD", "Online EWC consolidated at every iteration", "Averylongwordwithoutanyspaceinit" * 3]
    runs = [
        make_result(label, 0.9 - 0.1 * i - 0.01 * j, seed, column)
        for i, label in enumerate(labels)
        for j, column in enumerate(("task learning", "domain learning", "class learning"))
        for seed in (2019, 2020)
    ]
    return compare(runs, unfinished=[Unfinished(make_config("SGD", 2021, "task learning"), "failed", "x" * 200)])


@pytest.fixture(scope="module")
def html(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "index.html"
    other = compare([make_result("BGD", 0.9), make_result("SGD", 0.8)])
    path.write_text(render_page(make_sections([made, other], "svg"), "bgd report runs"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def pages(made, tmp_path_factory):
    """An index with two experiments, by file name."""
    folder = tmp_path_factory.mktemp("pages")
    other = compare([make_result(row, end, experiment="other") for row, end in (("BGD", 0.9), ("SGD", 0.8))])
    for name, text in render_pages(make_sections([made, other], "svg"), "bgd report runs").items():
        (folder / name).write_text(text, encoding="utf-8")
    return {path.name: path for path in folder.iterdir()}


class Tags(HTMLParser):
    """Every element, with what is wrong about the nesting."""

    VOID = frozenset({"meta", "link", "br", "img", "hr", "input"})

    def __init__(self, text):
        super().__init__()
        self.found, self.stack, self.wrong = [], [], []
        self.feed(text)
        self.wrong += self.stack

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.stack or self.stack.pop() != tag:
            self.wrong.append(tag)


def test_is_well_formed_and_needs_nothing_else(html):
    text = html.read_text(encoding="utf-8")
    tags = Tags(text)
    assert not tags.wrong
    assert not [tag for tag, _ in tags.found if tag in ("img", "iframe", "object", "embed")]
    for tag, attributes in tags.found:
        for name in ("src", "href", "xlink:href"):
            if name in attributes:
                assert attributes[name].startswith(("#", "data:")), (tag, attributes[name][:80])
    assert not re.search(r"@import|url\((?!#)", text)
    ids = [attributes["id"] for _, attributes in tags.found if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_is_accessible(html):
    tags = Tags(html.read_text(encoding="utf-8"))
    assert ("html", {"lang": "en"}) in tags.found
    assert all("scope" in attributes for tag, attributes in tags.found if tag == "th")
    pictures = [attributes for _, attributes in tags.found if attributes.get("role") == "img"]
    assert (
        len(pictures) == sum(tag == "figure" for tag, _ in tags.found) == sum(t == "figcaption" for t, _ in tags.found)
    )
    assert all(len(attributes["aria-label"]) > 30 for attributes in pictures)
    assert [tag for tag, _ in tags.found if tag in ("h1", "h2")] == ["h1", "h2", "h2", "h2"]


def test_missing_runs_are_listed(html):
    text = html.read_text(encoding="utf-8")
    assert "Not complete" in text
    assert "SGD, task learning, seed 2021: failed" in text
    assert "2 of 3 seeds" in text


def test_is_the_same_every_time():
    made = compare([make_result("BGD", 0.9), make_result("SGD", 0.8)])
    one, two = (render_page(make_sections([made], "svg"), "bgd report runs") for _ in range(2))
    assert one == two


def test_the_snippet_runs():
    """The code on the page, as it is printed."""
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    y = (x[:, 0] > 0).long()
    model = torch.nn.Linear(4, 2)
    before = F.cross_entropy(model(x), y).item()
    exec(SNIPPET, {"model": model, "stream": [(x, y)] * 200, "F": F})
    assert F.cross_entropy(model(x), y).item() < 0.8 * before


def test_without_results():
    assert "no results yet" in render_page([], "bgd report")


def _hostile():
    """A page and an index whose every text is an attack."""
    run = make_result(NASTY, 0.9, column=NASTY)
    machine = run.machine.model_copy(update=dict.fromkeys(("platform", "command", "commit"), NASTY))
    setup = run.config.setup
    data = setup.data.model_copy(update={"name": NASTY, "normalise": NASTY})
    config = run.config.model_copy(
        update={
            "settings": {NASTY: NASTY},
            "preset": NASTY,
            "setup": setup.model_copy(update={"data": data, "scenario": NASTY}),
        }
    )
    changes = {"warnings": [NASTY], "data_note": NASTY, "task_names": [NASTY] * len(run.task_names)}
    run = run.model_copy(update={**changes, "machine": machine, "config": config})
    declared = Experiment(
        **dict.fromkeys(("title", "shows", "source"), NASTY),
        name="made",
        setup=setup,
        rows={NASTY: {"method": "sgd"}},
        columns={NASTY: {}},
        notes=(NASTY,),
        presets={NASTY: {"about": NASTY}},
        paper={NASTY: {NASTY: {"mean": 90.0, "spread": 1.0, "source": NASTY}}},
    )
    runs = [run, make_result("SGD", 0.5, column=NASTY, experiment=NASTY)]
    missing = [Unfinished(make_config("Adam", column=NASTY), "failed", NASTY)]
    attack = replace(compare(runs, declared, missing, preset=NASTY, overrides=[NASTY]), remarks=NASTY)
    sections = make_sections([attack, replace(attack, name="other")], "svg")
    return render_pages(sections, f"bgd report {NASTY}", title=NASTY)


@pytest.mark.parametrize("page", ["index.html", "made.html"])
def test_text_of_users_is_escaped(page):
    tags = Tags(_hostile()[page])
    assert not tags.wrong
    assert sum(tag == "script" for tag, _ in tags.found) == 1
    assert not [tag for tag, _ in tags.found if tag in ("img", "iframe", "object")]
    assert not [a for _, attributes in tags.found for a in attributes if a.startswith("on")]
    links = [attributes["href"] for tag, attributes in tags.found if tag == "a"]
    assert all(link.startswith(("#", "data:text/csv", "data:application/json")) or ":" not in link for link in links)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if MISSING:
        pytest.skip(f"no browser: {' and '.join(MISSING)} not installed")
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


def test_no_errors_and_no_network(browser, html):
    browser.log("browser")
    browser.log("performance")
    browser.open(html, 1200)
    assert browser.script("return document.querySelectorAll('figure svg').length") > 8
    assert browser.log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.log("performance")]
    requested = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    # the browser's own start page also loads its parts, from inside itself
    urls = [r["request"]["url"] for r in requested if not r["documentURL"].startswith(("chrome:", "chrome-untrusted:"))]
    assert html.as_uri() in urls  # requests are being logged
    assert [url for url in urls if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in urls if url.startswith("file:")]) == 1


def test_text_of_users_is_not_executed(browser, tmp_path):
    for name, text in _hostile().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    browser.log("browser")
    for name in ("index.html", "made.html"):
        browser.open(tmp_path / name, 800)
        assert browser.script("return [window.hacked === undefined, document.images.length]") == [True, 0]
        assert [fault for fault in faults(browser) if not fault.startswith("overlap in a figure")] == []
    assert browser.log("browser") == []


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_is_cut_off_or_overlaps(browser, html, pages, width):
    for page in (html, *pages.values()):
        browser.open(page, width)
        assert faults(browser) == []
        assert browser.script("return document.documentElement.scrollWidth") == width


def test_nothing_is_cut_off_or_overlaps_in_print(browser, html, pages):
    for page in (html, pages["index.html"]):
        browser.open(page, 720)  # of A4 and Letter between their margins
        browser.cdp("Emulation.setEmulatedMedia", media="print")
        assert faults(browser) == []
    browser.cdp("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize(
    ("style", "fault"),
    [
        ("td { white-space: nowrap; } .room { container-type: normal; overflow: hidden; }", "cut off"),
        (".chips li { margin-right: -3rem; }", "blocks overlap"),
        ("svg.plot text { font-size: 30px !important; }", "overlap in a figure"),
        ("h2 { width: 3000px; }", "beyond the screen"),
    ],
)
def test_the_measurement_finds_a_fault(browser, html, style, fault):
    browser.open(html, 390)
    browser.script(f"document.head.append(Object.assign(document.createElement('style'), {{textContent: {style!r}}}))")
    assert [found for found in faults(browser) if found.startswith(fault)]


def test_an_index_and_a_page_for_each_experiment(pages):
    assert sorted(pages) == ["index.html", "made.html", "other.html"]
    text = pages["index.html"].read_text(encoding="utf-8")
    tags = Tags(text)
    assert not tags.wrong
    targets = [attributes["href"] for tag, attributes in tags.found if tag == "a"]
    assert targets == ["#results", "made.html", "other.html"]
    assert "On one seed" in text
    for name in ("made.html", "other.html"):
        assert 'href="index.html"' in pages[name].read_text(encoding="utf-8")
        assert pages[name].stat().st_size < 1_000_000


def test_comparisons_of_one_experiment_have_chips_of_their_own(made):
    text = render_page(make_sections([made, replace(made, overrides=("sgd.lr=1",)), made], ""), "bgd report runs")
    labels = re.findall(r'<li><a href="#c\d">(.*?)</a>', text)
    assert len(set(labels)) == 3


def test_one_seed_has_neither_a_best_nor_a_spread():
    one = [make_result(row, end) for row, end in (("BGD", 0.9), ("SGD", 0.8))]
    text = render_page(make_sections([compare(one)], "svg"), "bgd report runs")
    for absent in ("Bold", "(best)", "standard deviation", "±", 'class="best"', 'class="top"'):
        assert absent not in text, absent


def test_text_is_large_enough_on_a_phone(browser, html):
    browser.open(html, 360)
    smallest = browser.script(
        "return Math.min(...[...document.querySelectorAll('.figures svg text')]"
        ".map(t => parseFloat(getComputedStyle(t).fontSize) * Math.hypot(t.getScreenCTM().a, t.getScreenCTM().b)))"
    )
    assert smallest >= 7
    body = browser.script("return parseFloat(getComputedStyle(document.querySelector('figcaption')).fontSize)")
    assert body >= 12


def test_light_and_dark(browser, html):
    pictures = {}
    for dark in (False, True):
        browser.open(html, 900, dark=dark)
        pictures[dark] = Image.open(io.BytesIO(browser.screenshot())).convert("L")
        colours = browser.script(
            "const at = e => getComputedStyle(e).color; const svg = document.querySelector('svg.plot');"
            "return [at(document.body), at(svg)]"
        )
        assert colours[0] == colours[1]  # figures follow the page
    light, dark = (sum(p.resize((1, 1)).get_flattened_data()) for p in (pictures[False], pictures[True]))
    assert light > 180
    assert dark < 70
    assert ImageChops.difference(pictures[False], pictures[True]).getbbox()


def test_prints(browser, html):
    browser.open(html, 900, dark=True)
    content = browser.pdf()
    assert content.startswith(b"%PDF")
    assert len(content) > 50_000


def test_sorts_by_a_click_and_back(browser, html):
    browser.open(html, 900)
    browser.script("for (const one of document.querySelectorAll('details')) one.open = true")
    first = "document.querySelector('table.detail')"
    column = f"return [...{first}.tBodies[0].rows].map(row => parseFloat(row.cells[2].textContent))"
    click = f"{first}.tHead.rows[0].cells[2].querySelector('button').click()"
    start = browser.script(column)
    browser.script(click)
    assert browser.script(column) == sorted(start)
    browser.script(click)
    assert browser.script(column) == sorted(start, reverse=True)
    browser.script(click)
    assert browser.script(column) == start


def test_works_without_scripts(browser, html):
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(html, 900)
        text = browser.cdp("DOM.getDocument", depth=-1)
        assert json.dumps(text).count('"nodeName": "BUTTON"') == 0
        assert len(browser.screenshot()) > 10_000
    finally:
        browser.cdp("Emulation.setScriptExecutionDisabled", value=False)
