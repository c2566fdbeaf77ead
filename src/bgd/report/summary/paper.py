"""What the paper reports of a run, and whether the run is the paper's own: its scale, settings and data."""

from __future__ import annotations

from collections.abc import Sequence

from bgd.experiments import EXPERIMENTS
from bgd.experiments.declaration import Experiment, Reported
from bgd.experiments.layers import resolve
from bgd.methods import METHODS
from bgd.report.statistics import Summary
from bgd.report.summary.rows import column_of, row_of
from bgd.runs.config import RunConfig
from bgd.runs.data import data_names

PAPER_PRESET = "paper"
"""The preset of the paper's own scale."""

EVALUATION_SETTINGS = ("evaluations", "curve", "train", "stds")
"""Settings of ``setup.test`` that decide how often a run is evaluated."""


def summary_of(reported: Reported | None) -> Summary | None:
    """The paper's value, if it gives one; where the number of runs is not reported, one.

    >>> summary_of(Reported(mean=46.34, spread=2.36, runs=10))
    Summary(mean=46.34, spread=2.36, n=10)
    """
    if reported is None or reported.mean is None:
        return None
    return Summary(reported.mean, reported.spread, reported.runs or 1)


def without_other_tasks(
    reported: Reported | None, configs: Sequence[RunConfig], experiment: Experiment | None
) -> Reported | None:
    """Without the paper's values of single tasks where ours are made from other data.

    >>> without_other_tasks(None, [], None) is None
    True
    """
    references = [_reference_run(config, experiment) for config in configs]
    same = all(
        reference and data_names(config.setup.data) == data_names(reference.setup.data)
        for config, reference in zip(configs, references, strict=True)
    )
    return reported if reported is None or same else reported.model_copy(update={"tasks": ()})


def is_at_paper_scale(config: RunConfig, experiment: Experiment | None) -> bool:
    """Whether a run is what is declared as the paper's.

    How its steps were computed does not matter, nor in which precision their products, nor how often it was
    evaluated.

    >>> is_at_paper_scale(RunConfig(experiment="mine", method="bgd"), None)
    False
    """
    reference = _reference_run(config, experiment)
    return reference is not None and _result_settings(config) == _result_settings(reference)


def _result_settings(config: RunConfig) -> object:
    """The settings that decide what a run computes."""
    setup = config.setup.model_dump()
    for key in EVALUATION_SETTINGS:
        setup["test"].pop(key)
    setup["net"].pop("precision")
    # of a method that is not built in nothing is known: a report imports no code of others
    ignored = METHODS[config.method].computation_settings if config.method in METHODS else ()
    settings = {key: value for key, value in config.settings.items() if key not in ignored}
    return config.method, settings, setup


def _reference_run(config: RunConfig, experiment: Experiment | None) -> RunConfig | None:
    """The run that is declared as the paper's for the same method, setting and seed."""
    # a built-in declaration comes from the package: that of a folder may hold the user's overrides
    reference = EXPERIMENTS.get(config.experiment, experiment)
    row, column = row_of(config), column_of(config)
    if reference is None or row not in reference.rows or column not in reference.columns:
        return None
    preset = PAPER_PRESET if PAPER_PRESET in reference.presets else next(iter(reference.presets))
    return resolve(reference, preset, row, column, config.seed)
