"""Data from outside the package is identified by its contents, since a name reveals nothing of them."""

import importlib
import sys

import pytest

from bgd import plugins
from bgd.runs import data as run_data
from bgd.runs.config import DataConfig

MODULE = """
import numpy as np

def load():
    x, y = np.full((4, 5, 5), {value}, np.uint8), np.array([0, 1, 0, 1])
    return x, y, x, y
"""


@pytest.fixture
def write_module(tmp_path, monkeypatch):
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[bgd.data]\nsquares = their_squares:load\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins._installed.cache_clear()

    def write(value):
        (tmp_path / "their_squares.py").write_text(MODULE.format(value=value))
        sys.modules.pop("their_squares", None)
        importlib.invalidate_caches()
        run_data._load.cache_clear()
        run_data._digest.cache_clear()

    yield write
    plugins._installed.cache_clear()
    run_data._load.cache_clear()
    run_data._digest.cache_clear()
    sys.modules.pop("their_squares", None)


@pytest.mark.parametrize("name", ["squares", "their_squares:load"])
def test_own_data_is_a_hash_of_the_arrays(write_module, name):
    write_module(7)
    config = DataConfig(name=name)
    before = run_data.data_digest(config)
    assert len(before) == 32
    write_module(200)
    assert run_data.data_digest(config) not in ("", before)
    write_module(7)
    assert run_data.data_digest(config) == before
