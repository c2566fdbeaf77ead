import pytest
from made_runs import make_result

from bgd.report.load import ReportError
from bgd.report.side_by_side import pair_up, title_of
from bgd.report.summary import Comparison, compare


def make_comparison(preset: str, *overrides: str, name: str = "made") -> Comparison:
    return compare([make_result("BGD", 0.9, preset=preset, experiment=name)], overrides=overrides)


def test_comparisons_are_paired_by_scale_and_named_where_scales_differ():
    paper, short, quick = map(make_comparison, ("paper", "short", "quick"))
    assert [b.preset for _, b in pair_up([paper, short], [short, paper])] == ["paper", "short"]
    assert [a.preset for a, _ in pair_up([paper, short], [short])] == ["short"]
    with pytest.raises(ReportError, match="nothing in common"):
        pair_up([paper, quick], [short])
    ((a, b),) = pair_up(
        [paper, make_comparison("short", name="other")],
        [make_comparison("short", "lr=1"), make_comparison("short", name="third")],
    )
    assert title_of(a, b) == "made (A: paper; B: short, lr=1)"
    assert title_of(a, a) == "made"
