import numpy as np
import pytest
from made_runs import make_result

from bgd.experiments import Experiment
from bgd.report.figures.catalog import draw_plots
from bgd.report.findings import headline
from bgd.report.statistics import binomial_interval
from bgd.report.summary import compare


def counted(counts: bool = True) -> Experiment:
    return Experiment(
        name="collapse", title="T", rows={"ten": {"method": "bgd"}, "one": {"method": "bgd"}}, counts_collapses=counts
    )


def results():
    """Of ten networks the runs of two seeds in four collapse; of one pass none."""
    ten = [make_result("ten", 0.1 if seed < 2 else 0.9, seed) for seed in range(4)]
    ten = [run.model_copy(update={"warnings": ["collapsed"] if i < 2 else []}) for i, run in enumerate(ten)]
    return [*ten, *(make_result("one", 0.9, seed) for seed in range(4))]


def test_draws_the_share_of_every_row_with_its_interval():
    (plot, *_) = draw_plots(compare(results(), counted()))
    assert plot.name == "collapses"
    assert "ten 2 of 4" in plot.alt
    (ax,) = plot.draw().axes
    shares = [container.lines[0].get_xdata()[0] for container in ax.containers]
    assert shares == [50, 0]
    assert [text.get_text() for text in ax.texts] == ["2 of 4", "0 of 4"]
    (low, high), _ = (container.lines[2][0].get_segments()[0][:, 0] for container in ax.containers)
    np.testing.assert_allclose([low, high], 100 * np.array(binomial_interval(2, 4)))


def test_other_experiments_have_no_such_figure():
    assert "collapses" not in [plot.name for plot in draw_plots(compare(results(), counted(False)))]


def test_the_finding_is_the_count_and_not_the_accuracy():
    text = headline(compare(results(), counted()))
    assert text == "Collapsed runs: accuracy: 2 of 4 (ten), 0 of 4 (one)."


@pytest.mark.parametrize(("k", "n"), [(0, 5), (1, 20), (10, 20), (20, 20)])
def test_the_interval_is_that_of_the_exact_test(k, n):
    """Its bounds are where the binomial tail has 2.5 %."""
    from scipy.stats import binom

    low, high = binomial_interval(k, n)
    assert low == 0 if k == 0 else binom.sf(k - 1, n, low) == pytest.approx(0.025)
    assert high == 1 if k == n else binom.cdf(k, n, high) == pytest.approx(0.025)
