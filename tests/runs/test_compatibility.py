"""Runs that were made with other defaults."""

import pytest
from small_runs import DRIFTING, small

from bgd.methods.bgd import BGDLearner
from bgd.runs import RunError, run


@pytest.fixture
def changed(monkeypatch):
    """Change a default, as a later version may."""
    return lambda: monkeypatch.setitem(BGDLearner.__init__.__kwdefaults__, "mc_samples", 3)


@pytest.mark.parametrize("done", [True, False])
def test_a_run_with_another_default_is_neither_used_nor_continued(done, changed, tmp_path):
    config = small("bgd", DRIFTING, "continuous task-agnostic", {"std_init": 0.05})
    run(config, tmp_path)
    if not done:
        (tmp_path / "result.json").unlink()
    changed()
    with pytest.raises(RunError, match=r"the default of mc_samples has changed since .*: remove that folder"):
        run(config, tmp_path)
