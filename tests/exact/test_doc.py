"""The code of docs/exact-head.md runs as printed."""

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "exact-head.md"


def test_the_page_runs():
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    np.testing.assert_allclose(names["both"].mean, names["head"].mean, atol=1e-10)
    assert np.abs(names["mean"] - names["y"]).mean() < 0.15
    assert (names["epistemic"] > 0).all()
