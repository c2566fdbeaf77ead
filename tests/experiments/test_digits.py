"""The demo's baselines are tuned: at what was best in the search that the repository holds, on seeds of its own."""

from pathlib import Path

import pytest

from bgd.experiments import find
from bgd.experiments.builtin.digits import COLUMNS, EXPERIMENT, TUNED
from bgd.experiments.layers import merge_setups
from bgd.experiments.plan import make_plan
from bgd.experiments.storage import read_comparison

SEARCH = read_comparison(Path(__file__).parents[2] / "results" / "digits-search-paper")


def _means(label: str, column: str) -> dict[tuple, float]:
    """Mean accuracy by the settings tried; a setting with a failed run has none."""
    found: dict[tuple, list[float]] = {}
    for result in SEARCH.results:
        config = result.config
        if config.column == column and config.row.rpartition(", ")[0] == label.removesuffix(", tuned"):
            found.setdefault(tuple(sorted(config.settings.items())), []).append(result.average_accuracy)
    return {settings: sum(values) / len(values) for settings, values in found.items() if len(values) == 2}


@pytest.mark.parametrize(("label", "column"), [(label, column) for label in TUNED for column in TUNED[label]])
def test_each_baseline_runs_at_the_best_setting_of_the_search(label: str, column: str) -> None:
    row = EXPERIMENT.rows[label]
    chosen = tuple(sorted((row.settings | row.columns[column].settings).items()))
    means = _means(label, column)
    assert len(means) >= 3
    assert means[chosen] == max(means.values())


def test_the_search_is_of_the_demo_but_for_its_seeds() -> None:
    search = find("digits-search")
    assert search.columns == EXPERIMENT.columns
    assert search.setup == EXPERIMENT.setup
    assert not set(search.seeds) & set(EXPERIMENT.seeds)
    assert {result.config.seed for result in SEARCH.results} == set(search.seeds)
    demo = {config.column: config.setup for config in make_plan(EXPERIMENT, "quick").configs if config.row == "SGD"}
    for result in SEARCH.results:
        if not result.config.row.startswith("SGD + "):
            assert result.config.setup == merge_setups(demo[result.config.column]), result.config.title


def test_what_runs_as_it_comes_has_no_settings() -> None:
    for label in ("BGD", "BGD + labels trick", "StreamClassifier"):
        assert not EXPERIMENT.rows[label].settings
        assert not EXPERIMENT.rows[label].columns
    assert set(TUNED["SGD"]) == set(COLUMNS)
