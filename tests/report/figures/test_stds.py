import numpy as np
import pytest
from made_runs import make_result

from bgd.report.figures.catalog import draw_plots
from bgd.report.figures.stds import Ridges, draw_ridges
from bgd.report.summary import compare


def captions(runs, experiment=None) -> dict[str, str]:
    return {plot.name: plot.caption for plot in draw_plots(compare(runs, experiment))}


def test_ridges_are_shares_whatever_the_number_of_weights():
    counts = np.array([[1.0, 1.0], [100.0, 100.0]])
    ax = draw_ridges([Ridges("BGD", np.array([1e-3, 1e-2, 1e-1]), counts, ("a", "b"), 0.06)]).axes[0]
    assert ax.get_xscale() == "log"
    tops = [patch.get_path().vertices[:, 1].max() - base for patch, base in zip(ax.patches, (1, 0), strict=True)]
    assert tops[0] == pytest.approx(tops[1])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "a"]
    assert "initial std 0.06" in [text.get_text() for text in ax.texts]


def test_the_caption_names_stds_beyond_the_histogram():
    run = make_result("BGD", 0.9)
    name = "stds"
    assert "beyond the axis" not in captions([run])[name]
    run.stds[-1] = run.stds[-1].model_copy(update={"largest": 2e3})
    assert "What lies beyond the axis is at its ends." in captions([run])[name]


def test_stds_that_start_at_zero_have_no_line_and_those_that_stay_zero_no_figure():
    """As of Noisy K-FAC, which draws no noise before its first inversion."""
    run = make_result("BGD", 0.9)
    none = {"edges": [1e-8, 2e-8], "counts": [5], "smallest": 0.0, "largest": 0.0}
    late = [run.stds[0].model_copy(update=none), *run.stds[1:]]
    drawn = {plot.name: plot for plot in draw_plots(compare([run.model_copy(update={"stds": late})]))}
    figure = drawn["stds"].figure
    assert not [text for text in figure.axes[0].texts if "initial std" in text.get_text()]
    assert figure.axes[0].get_xlim()[0] >= min(h.edges[0] for h in run.stds[1:]) * 0.999
    never = [h.model_copy(update=none) for h in run.stds]
    assert not [p for p in draw_plots(compare([run.model_copy(update={"stds": never})])) if p.name.startswith("stds")]


def test_every_row_with_a_posterior_has_a_panel_of_one_figure():
    rows = ("BGD", "BGD, capped", "BGD, two samples", "SGD")
    (plot,) = [p for p in draw_plots(compare(make_result(row, 0.9) for row in rows)) if p.name.startswith("stds")]
    panels = [ax for ax in plot.figure.axes if ax.axison]
    assert [ax.get_title(loc="left") for ax in panels] == list(rows[:3])
    assert plot.secondary
