"""A comparison with known means, spreads and verdicts."""

import pytest
from made_runs import make_config, make_result

from bgd.experiments.declaration import Experiment, Reported, Row
from bgd.report.summary import Comparison, Unfinished, compare
from bgd.runs.result import RunResult


@pytest.fixture
def experiment() -> Experiment:
    return Experiment(
        name="made",
        title="Continuous permuted digits",
        shows="BGD keeps what it has learnt without being given the task boundaries.",
        source="Figure 3",
        setup=make_config("BGD").setup,
        rows={
            row: Row(method=make_config(row).method, settings=make_config(row).settings)
            for row in ("BGD", "SGD", "Adam", "Offline")
        },
        paper={
            "BGD": {"accuracy": Reported(mean=92.0, spread=1.0, runs=10)},
            "SGD": {"accuracy": Reported(mean=85.0, spread=0.5, runs=10)},
            "Adam": {"accuracy": Reported(mean=60.0, spread=0.5, runs=10)},
        },
        notes=("A note.",),
    )


@pytest.fixture
def results() -> list[RunResult]:
    """BGD 91, 92, 93 (paper 92 ± 1: agrees); SGD 80, 82 (paper 85 ± 0.5: lower); Offline 97."""
    return [
        *(make_result("BGD", end, 2019 + i) for i, end in enumerate((0.91, 0.92, 0.93))),
        *(make_result("SGD", end, 2019 + i) for i, end in enumerate((0.80, 0.82))),
        make_result("Offline", 0.97),
    ]


@pytest.fixture
def comparison(results, experiment) -> Comparison:
    """As above; one run of SGD is not finished, and Adam's only one has failed."""
    unfinished = [
        Unfinished(make_config("SGD", 2021), "not finished"),
        Unfinished(make_config("Adam", 2019), "failed", "ValueError: lr"),
    ]
    return compare(results, experiment, unfinished)
