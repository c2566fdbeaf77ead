"""Settings of a comparison's runs: what all share, and what is each row's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bgd.report.summary.rows import flatten
from bgd.report.summary.types import Comparison
from bgd.runs.config import unused


def split_settings(comparison: Comparison) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """What all runs share, and what is each row's own, by its label: with the defaults that the method had.

    >>> from bgd.report.summary import compare
    >>> split_settings(compare([]))
    ({}, {})
    """
    configs: dict[str, Mapping[str, Any]] = {}
    for entry in comparison.entries.values():
        config = entry.runs[0].config if entry.runs else entry.unfinished[0].config
        label = entry.row + (f", {entry.column}" if len(comparison.columns) > 1 else "")
        machine = entry.runs[0].machine if entry.runs else None
        setup = flatten(config.setup.model_dump(mode="json"))
        without_effect = unused(config.setup)
        configs[label] = {"method": config.method, **config.settings, **(machine.settings if machine else {})} | {
            key: value for key, value in setup.items() if key not in without_effect
        }
    return split_shared(configs)


def split_shared(
    configs: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """What all configurations share, and what is left of each.

    >>> split_shared({"a": {"lr": 1, "batch": 8}, "b": {"lr": 2, "batch": 8}})
    ({'batch': 8}, {'a': {'lr': 1}, 'b': {'lr': 2}})
    """
    flat = {name: flatten(config) for name, config in configs.items()}
    if not flat:
        return {}, {}
    first = next(iter(flat.values()))
    shared = {k: v for k, v in first.items() if all(k in other and other[k] == v for other in flat.values())}
    return shared, {name: {k: v for k, v in f.items() if k not in shared} for name, f in flat.items()}
