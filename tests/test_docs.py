"""The documentation: snippets run, links lead somewhere, every page is in the site."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "results" not in page.parts)
WRITTEN = [page.name for page in PAGES if page.parent == DOCS]


def blocks(page: str, language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def given() -> dict[str, object]:
    """What the pages take for granted: data, a network, a stream."""
    rows = np.random.default_rng(0).normal(size=(64, 4))
    x, y = torch.from_numpy(rows).float(), torch.from_numpy((rows[:, 0] > 0).astype(int))
    stream = [(x[i : i + 16], y[i : i + 16]) for i in range(0, 64, 16)]
    return {"Net": lambda: nn.Linear(4, 2), "stream": stream, "x": x, "y": y, "rows": rows, "labels": y.numpy()}


def test_the_first_page_runs() -> None:
    pytest.importorskip("sklearn")
    names = given()
    stream, *rest = blocks("index.md")
    exec(stream, names | {"stream": [(x.numpy(), y.numpy()) for x, y in names["stream"]], "x": names["rows"]})
    for block in rest:
        exec(block, names)
    assert names["p"].probs.shape == (16, 2)  # type: ignore[attr-defined]


def test_the_page_on_uncertainty_runs() -> None:
    pytest.importorskip("sklearn")
    names = given()
    exec(blocks("index.md")[1], names)
    for block in blocks("uncertainty.md"):
        exec(block, names)
    assert names["sure"].shape == names["y"].shape  # type: ignore[attr-defined]


def slug(heading: str) -> str:
    """The anchor that both GitHub and the site give a heading."""
    text = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading).strip().lower())
    return re.sub(r"[\s]+", "-", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]+))?\)", page.read_text()):
        file = (page.parent / target) if target else page
        assert file.exists() or target.endswith("results/index.md"), f"{target}: made by the site from RESULTS.md"
        if anchor and file.suffix == ".md" and "api" not in file.parts:
            headings = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
            assert anchor in map(slug, headings), f"{target}#{anchor}"


def test_every_page_is_in_the_site_and_every_page_of_the_site_exists() -> None:
    listed = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert listed == {page.relative_to(DOCS).as_posix() for page in PAGES} | {"results/index.md"}


def test_every_example_is_in_the_gallery() -> None:
    text = (DOCS / "gallery.md").read_text()
    for example in (ROOT / "examples").glob("*.py"):
        assert example.name in text, example.name


def test_no_page_fetches_anything() -> None:
    assert "font: false" in (ROOT / "mkdocs.yml").read_text()
    for page in PAGES:
        assert not re.search(r"!\[[^\]]*\]\(https?:|<(?:script|link|img)\b", page.read_text()), page.name
