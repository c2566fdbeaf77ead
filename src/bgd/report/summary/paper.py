"""What the paper reports of a run, and whether the run is the paper's own: its scale, settings and data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bgd.experiments import EXPERIMENTS
from bgd.experiments.declaration import Experiment, Reported
from bgd.experiments.layers import resolve
from bgd.methods import METHODS
from bgd.report.formatting import setting
from bgd.report.statistics import Summary
from bgd.report.summary.rows import column_of, flatten, row_of
from bgd.runs.config import RunConfig

NOTHING: Final[Mapping[str, Any]] = {}

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


def reference_run(config: RunConfig, experiment: Experiment | None) -> RunConfig | None:
    """The run that is declared as the paper's for the same row and column; None where there is none.

    >>> reference_run(RunConfig(experiment="mine", method="bgd"), None) is None
    True
    """
    # a built-in declaration comes from the package: that of a folder may hold the user's overrides
    reference = EXPERIMENTS.get(config.experiment, experiment)
    row, column = row_of(config), column_of(config)
    if reference is None or row not in reference.rows or column not in reference.columns:
        return None
    preset = PAPER_PRESET if PAPER_PRESET in reference.presets else next(iter(reference.presets))
    return resolve(reference, preset, row, column, config.seed)


def differences(config: RunConfig, reference: RunConfig, known: Mapping[str, Any] = NOTHING) -> list[str]:
    """What of a run is not as in the one declared as the paper's: each setting that decides what is computed.

    How its steps were computed does not matter, nor in which precision their products, nor how often it was
    evaluated.

    Args:
        config: of the run.
        reference: see :func:`reference_run`.
        known: all settings that the method had at the time, with their values, where that was recorded: a setting that
            came later is no difference.

    >>> config = RunConfig(method="bgd", settings={"mc_samples": 10, "chunk_size": 2})
    >>> differences(config.model_copy(update={"settings": {"mc_samples": 2}}), config)
    ['mc_samples 2 instead of 10']
    """
    ours, theirs = _result_settings(config), _result_settings(reference)
    if known:
        ours = {**{key: known[key] for key in theirs if key in known}, **ours}
        theirs = {key: value for key, value in theirs.items() if key in ours or key not in reference.settings}
    return [
        f"{key} {setting(ours[key]) if key in ours else 'by default'} instead of "
        f"{setting(theirs[key]) if key in theirs else 'the default'}"
        for key in dict.fromkeys([*ours, *theirs])
        if key not in ours or key not in theirs or ours[key] != theirs[key]
    ]


def _result_settings(config: RunConfig) -> dict[str, Any]:
    """The settings that decide what a run computes, flat."""
    setup = config.setup.model_dump()
    for key in EVALUATION_SETTINGS:
        setup["test"].pop(key)
    setup["net"].pop("precision")
    # of a method that is not built in nothing is known: a report imports no code of others
    ignored = METHODS[config.method].computation_settings if config.method in METHODS else ()
    own = {key: value for key, value in config.settings.items() if key not in ignored}
    return {"method": config.method, **own, **flatten(setup)}
