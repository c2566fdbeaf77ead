"""Experiments by name: the built-in ones, and users' own from TOML files."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bgd.errors import suggest
from bgd.experiments.builtin import (
    cifar10_timing,
    cifar10_vgg,
    cifar_10_100,
    collapse,
    continuous_permuted_mnist,
    continuous_search,
    defaults,
    digits,
    digits_search,
    discrete_permuted_mnist,
    exact_head,
    exact_head_permuted,
    labels_trick,
    labels_trick_coefficients,
    long_training,
    mc_samples,
    mnist_classification,
    permuted_mnist,
    split_mnist,
    split_mnist_initialisation,
    tabular_streams,
    vision_mix,
)
from bgd.experiments.declaration import Experiment, ExperimentError
from bgd.experiments.explain import explain
from bgd.experiments.folders import slug

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        digits,
        digits_search,
        labels_trick,
        labels_trick_coefficients,
        split_mnist,
        split_mnist_initialisation,
        permuted_mnist,
        continuous_permuted_mnist,
        continuous_search,
        discrete_permuted_mnist,
        mnist_classification,
        mc_samples,
        defaults,
        collapse,
        vision_mix,
        cifar_10_100,
        cifar10_vgg,
        cifar10_timing,
        long_training,
        exact_head,
        exact_head_permuted,
        tabular_streams,
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

    Paths in the file are relative to it. Its folder is searched for the modules that it names, after all others.

    Raises:
        ExperimentError: for an unknown name, a file that cannot be read, or a wrong key or value.
    """
    if not str(name).endswith(".toml"):
        return find(str(name))
    path = Path(name).expanduser()
    try:
        declared = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExperimentError(f"{name}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{name}: not TOML: {error}") from None
    declared.setdefault("name", slug(path.stem))
    folder = path.absolute().parent
    try:
        experiment = Experiment.model_validate(_with_absolute_paths(_with_none(declared), folder))
    except ValidationError as error:
        raise ExperimentError(f"{name}: {explain(error, Experiment)}") from None
    if experiment.name in EXPERIMENTS:
        raise ExperimentError(f'{name}: {experiment.name!r} is the name of a built-in experiment: set name = "..."')
    return experiment


def _with_none(declared: Any, in_settings: bool = False) -> Any:
    """TOML has no null: in settings of methods the text "none" means None."""
    if isinstance(declared, dict):
        return {key: _with_none(value, in_settings or key == "settings") for key, value in declared.items()}
    return None if in_settings and declared == "none" else declared


def _with_absolute_paths(declared: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A declaration whose data folders and import paths no longer depend on the working directory."""

    def absolute(text: Any) -> Any:
        is_path = isinstance(text, str) and (os.sep in text or text.startswith("~"))
        return os.path.normpath(folder / Path(text).expanduser()) if is_path else text

    own = declared.get("import_paths", [])
    paths = [os.path.normpath(folder / str(one)) for one in own] if isinstance(own, list) else own
    declared = _map_data_names(declared, absolute)
    return declared | {"import_paths": [*paths, str(folder)] if isinstance(paths, list) else paths}


def _map_data_names(declared: Any, change: Callable[[Any], Any], in_data: bool = False) -> Any:
    """The declaration with every name of a data set changed, in whatever layer it is given."""
    if isinstance(declared, list):
        return [_map_data_names(one, change, in_data) for one in declared]
    if not isinstance(declared, dict):
        return declared
    return {
        key: change(value)
        if (in_data and key == "name") or (key == "data" and isinstance(value, str))
        else _map_data_names(value, change, in_data or key == "data")
        for key, value in declared.items()
    }
