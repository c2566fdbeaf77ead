"""The method in docs/new-method.md runs as printed, and keeps the promises of any other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from bgd.methods import METHODS, create

PAGE = Path(__file__).parents[2] / "docs" / "new-method.md"


@pytest.fixture
def page(capsys):
    """The names that the page's code defines, after it ran from top to bottom."""
    before = dict(METHODS)
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    yield {**names, "printed": capsys.readouterr().out, "blocks": blocks}
    METHODS.clear()
    METHODS.update(before)


def test_it_is_ten_lines_and_learns(page):
    body = page["blocks"][0].split("class Tether(Base):\n")[1].split("\n\nMETHODS")[0]
    assert len([line for line in body.splitlines() if '"""' not in line]) <= 10
    assert page["accuracy"] > 0.85
    assert page["printed"].strip() == "{'lr': 0.01, 'pull': 0.1, 'decay': 0.99}"


def test_it_resumes_bit_for_bit_and_takes_the_labels_trick(page, scenarios, heads_of, make_net, make_batches):
    scenario = scenarios["class"]
    batches = make_batches(0, scenario)

    def fresh():
        return create("tether", make_net(6), heads_of(scenario), scenario, labels_trick=True)

    whole, resumed = fresh(), fresh()
    for b in batches[:3]:
        whole.observe(*b)
    resumed.load_state_dict(whole.state_dict())
    assert [whole.observe(*b) for b in batches[3:]] == [resumed.observe(*b) for b in batches[3:]]
    for p, q in zip(whole.net.parameters(), resumed.net.parameters(), strict=True):
        assert torch.equal(p, q)
