"""Each table and figure of the paper as a declared comparison, and users' own from TOML files.

>>> find("labels-trick").paper["BGD"]["+ labels trick"].mean
46.34
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bgd.errors import suggest
from bgd.experiments.builtin import (
    cifar10_timing,
    cifar10_vgg,
    cifar_10_100,
    continuous_permuted_mnist,
    continuous_search,
    digits,
    discrete_permuted_mnist,
    labels_trick,
    labels_trick_coefficients,
    long_training,
    mc_samples,
    mnist_classification,
    permuted_mnist,
    split_mnist,
    vision_mix,
)
from bgd.experiments.declaration import Experiment, ExperimentError, Preset, Reported, Row
from bgd.experiments.plan import (
    check_changes,
    check_declaration,
    check_parts,
    comparison_folder,
    explain,
    overridden,
    plan,
    run_folder,
    slug,
)

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        digits,
        labels_trick,
        labels_trick_coefficients,
        split_mnist,
        permuted_mnist,
        continuous_permuted_mnist,
        continuous_search,
        discrete_permuted_mnist,
        mnist_classification,
        mc_samples,
        vision_mix,
        cifar_10_100,
        cifar10_vgg,
        cifar10_timing,
        long_training,
    )
}
"""Every built-in experiment by name: one file each."""


def find(name: str) -> Experiment:
    """A built-in experiment.

    >>> find("split-mnits")
    Traceback (most recent call last):
    bgd.experiments.declaration.ExperimentError: no experiment 'split-mnits': did you mean 'split-mnist'?
    """
    if name not in EXPERIMENTS:
        raise ExperimentError(f"no experiment {name!r}: {suggest(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]


def load(name: str | Path) -> Experiment:
    """A built-in experiment by name, or a user's own from a ``.toml`` file.

    Raises:
        ExperimentError: for an unknown name, a file that cannot be read, or a wrong key or value: says where it is
            and what was meant.
    """
    if not str(name).endswith(".toml"):
        return find(str(name))
    try:
        declared = tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise ExperimentError(f"{name}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{name}: not TOML: {error}") from None
    declared.setdefault("name", slug(Path(name).stem))
    try:
        experiment = Experiment.model_validate(_with_none(declared))
        if experiment.name in EXPERIMENTS:
            raise ExperimentError(f'{experiment.name!r} is the name of a built-in experiment: set name = "..."')
        check_declaration(experiment)
        check_parts(experiment)
    except ValidationError as error:
        raise ExperimentError(f"{name}: {explain(error, Experiment)}") from None
    except ExperimentError as error:
        raise ExperimentError(f"{name}: {error}") from None
    return experiment


def _with_none(declared: Any, inside: bool = False) -> Any:
    """TOML has no null: in settings of methods the word "none" stands for it."""
    if isinstance(declared, dict):
        return {key: _with_none(value, inside or key == "settings") for key, value in declared.items()}
    return None if inside and declared == "none" else declared


__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "ExperimentError",
    "Preset",
    "Reported",
    "Row",
    "check_changes",
    "check_declaration",
    "comparison_folder",
    "find",
    "load",
    "overridden",
    "plan",
    "run_folder",
]
