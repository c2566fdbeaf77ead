"""The code of docs/new-method.md runs as printed: its files as a package, its other blocks from top to bottom."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
import torch

from bgd.methods import create

PAGE = Path(__file__).parents[2] / "docs" / "new-method.md"
TETHER = "mypackage.tether:Tether"


@pytest.fixture
def page(capsys, tmp_path, monkeypatch):
    """The names that the page's code defines, with its files in a package on sys.path."""
    found = re.findall(r"```python( file=(\S+))?\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    files = {name: code for _, name, code in found if name}
    blocks = [code for _, name, code in found if not name]
    assert (len(files), len(blocks)) == (4, 3)
    for name, code in files.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    yield {**names, "printed": capsys.readouterr().out, "files": files}
    for module in [m for m in sys.modules if m.partition(".")[0] == "mypackage"]:
        del sys.modules[module]


def test_the_method_is_ten_lines_and_learns(page):
    body = page["files"]["mypackage/tether.py"].split("class Tether(Base):\n")[1].rstrip()
    assert len([line for line in body.splitlines() if '"""' not in line]) <= 10
    assert page["accuracy"] > 0.85
    assert page["printed"].strip() == "{'lr': 0.01, 'pull': 0.1, 'decay': 0.99}"


def test_the_method_resumes_bit_for_bit_and_supports_the_labels_trick(
    page, scenarios, heads_of, make_net, make_batches
):
    scenario = scenarios["class"]
    batches = make_batches(0, scenario)

    def fresh():
        return create(TETHER, make_net(6), heads_of(scenario), scenario, labels_trick=True)

    whole, resumed = fresh(), fresh()
    for b in batches[:3]:
        whole.observe(*b)
    resumed.load_state_dict(whole.state_dict())
    assert [whole.observe(*b) for b in batches[3:]] == [resumed.observe(*b) for b in batches[3:]]
    for p, q in zip(whole.net.parameters(), resumed.net.parameters(), strict=True):
        assert torch.equal(p, q)


def test_network_data_and_loss_are_used(page):
    assert page["net"][1].out_features == 32
    train_x, train_y, test_x, test_y = importlib.import_module("mypackage.data").load()
    assert (train_x.shape, test_x.shape) == ((400, 8, 8), (100, 8, 8))
    assert (len(train_y), len(test_y)) == (400, 100)
    scores, y = torch.randn(5, 10), torch.arange(5)
    loss = page["learner"].outputs.loss(scores, y, reduction="none")
    p = scores.softmax(1)[torch.arange(5), y]
    torch.testing.assert_close(loss, -((1 - p) ** 2) * p.log())
