import math

import pytest
from made_runs import TASKS, make_result

from bgd.report.figures.catalog import draw_plots
from bgd.report.summary import compare
from bgd.runs.result import CurvePoint, Fit


def test_training_images_beside_the_test_images():
    run = make_result("BGD", 0.9)
    fits = [Fit(iteration=e.iteration, accuracy=[0.99] * TASKS, loss=[0.125] * TASKS) for e in run.evaluations]
    drawn = {
        plot.name: plot
        for plot in draw_plots(compare([run.model_copy(update={"fits": fits}), make_result("SGD", 0.8)]))
    }
    accuracy, loss = (
        [line for line in drawn[name].figure.axes[0].lines if not line.get_label().startswith("_")]  # samples
        for name in ("learning-curves", "learning-curves-loss")
    )
    assert [line.get_label() for line in accuracy] == ["BGD, test", "BGD, training", "SGD"]
    assert accuracy[0].get_color() == accuracy[1].get_color() != accuracy[2].get_color()
    assert accuracy[1].get_ydata().tolist() == pytest.approx([99] * TASKS)
    assert [line.get_label() for line in loss] == ["BGD, test", "BGD, training"]
    assert [line.get_ydata()[-1] for line in loss] == [0.5, 0.125]


def test_a_loss_that_is_not_finite_or_leaves_the_axis_is_named():
    calm, failed, jumping = (make_result(row, 0.9) for row in ("SGD", "K = 1", "K-FAC"))
    failed.curve[:] = [CurvePoint(iteration=p.iteration, loss=math.nan) for p in failed.curve]
    jumping.curve[50] = CurvePoint(iteration=jumping.curve[50].iteration, loss=1e9)
    (plot,) = (plot for plot in draw_plots(compare([calm, failed, jumping])) if plot.name == "training-loss")
    assert "Nowhere finite, and not drawn: K = 1." in plot.caption
    assert "Beyond the axis at times: K-FAC." in plot.caption
    assert plot.figure.axes[0].get_ylim()[1] < 10
