import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from bgd.report.figures.schedule import plot_schedule
from bgd.scenarios import Continuous, DataSet, Discrete, Drifting, Part, ScenarioError, permute, rotating, scenario

CONTINUOUS = scenario("continuous task-agnostic")


@pytest.fixture
def data() -> DataSet:
    part = Part(torch.zeros(60, 1, 4, 4, dtype=torch.uint8), torch.arange(60) % 10)
    return DataSet("zeros", part, part, tuple("0123456789"))


def test_lines_are_expected_and_dots_are_sampled(data):
    stream = Continuous(permute(data, 3, shared_head=True), CONTINUOUS, iterations=300, batch_size=16)
    ax = plot_schedule(stream, points=50)
    iterations = np.linspace(0, 299, 50).round().astype(int)
    lines, dots = ax.lines[0::2], ax.lines[1::2]
    assert len(lines) == len(dots) == 3
    for t in range(3):
        line, share = lines[t].get_ydata(), stream.expected_proportions(iterations)[:, t]
        np.testing.assert_allclose(np.nan_to_num(line), share)
        assert np.isfinite(line[share > 0]).all()
        sampled = stream.sampled_proportions(iterations)[:, t]
        np.testing.assert_allclose(dots[t].get_ydata(), sampled[sampled > 0])


@pytest.mark.parametrize("kind", ["discrete", "drifting", "many"])
def test_every_kind_of_stream(data, tmp_path, kind):
    stream = {
        "discrete": lambda: Discrete(permute(data, 3, shared_head=True), scenario("discrete task-agnostic")),
        "drifting": lambda: Drifting(rotating(data), CONTINUOUS, iterations=50),
        "many": lambda: Continuous(permute(data, 40, shared_head=True), CONTINUOUS, iterations=200),
    }[kind]()
    figure = Figure()
    ax = plot_schedule(stream, figure.subplots())
    figure.savefig(tmp_path / "schedule.png")
    assert ax.get_xlabel() == "iteration"
    assert (tmp_path / "schedule.png").stat().st_size > 1000


def test_too_few_points_are_rejected(data):
    stream = Discrete(permute(data, 2, shared_head=True), scenario("discrete task-agnostic"))
    with pytest.raises(ScenarioError, match="points=1"):
        plot_schedule(stream, points=1)
