"""How much of the paper's training a run is: full, with fewer seeds, shortened, or a smoke test that says nothing."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from bgd.runs.config import DataConfig, RunConfig
from bgd.runs.data import data_names

SMOKE_SHARE = 0.1
"""A run on a smaller share of the paper's training than this shows that code runs, and nothing else."""

TRAINING_IMAGES: Final = {
    "mnist": 60_000,
    "fashion-mnist": 60_000,
    "notmnist": 529_114,
    "svhn": 73_257,
    "cifar10": 50_000,
    "cifar100": 50_000,
    "digits": 1_437,
}
"""Of the published sets, whole."""


class Scale(StrEnum):
    """Of runs beside the paper's."""

    FULL = "full"
    FEWER_SEEDS = "fewer seeds"
    SHORTENED = "shortened"
    SMOKE = "smoke"


def scale_of(configs: Sequence[RunConfig], reference: RunConfig, seeds: int | None) -> Scale:
    """The scale of one method's runs in one setting: that of the shortest.

    Args:
        configs: of the runs.
        reference: the run that is declared as the paper's.
        seeds: how many runs the paper's value is the mean of, if it says so.

    >>> config = RunConfig(method="sgd", setup={"stream": {"kind": "discrete", "epochs": 10}})
    >>> short = RunConfig(method="sgd", setup={"stream": {"kind": "discrete", "epochs": 2}})
    >>> [str(scale_of([config], config, n)) for n in (1, 10)], str(scale_of([short], config, 1))
    (['full', 'fewer seeds'], 'shortened')
    """
    same_data = all(data_names(one.setup.data) == data_names(reference.setup.data) for one in configs)
    share = min(share_of_training(one, reference) for one in configs)
    if not same_data or share < SMOKE_SHARE:
        return Scale.SMOKE
    if share < 1:
        return Scale.SHORTENED
    return Scale.FEWER_SEEDS if seeds is not None and len(configs) < seeds else Scale.FULL


def share_of_training(config: RunConfig, reference: RunConfig) -> float:
    """The examples a run trains on, as a share of the reference's; repeated ones count again.

    >>> one, two = (RunConfig(method="sgd", setup={"data": {"name": "mnist", "train": n}}) for n in (6000, None))
    >>> share_of_training(one, two)
    0.1
    """
    ours, theirs = config.setup, reference.setup
    if ours.stream.kind != "discrete" or theirs.stream.kind != "discrete":
        seen = [one.stream.iterations * one.stream.batch_size for one in (ours, theirs)]
        return seen[0] / seen[1]
    share = ours.stream.epochs / theirs.stream.epochs * (_images(ours.data) / _images(theirs.data))
    repeats = ours.tasks.kind == theirs.tasks.kind == "permute"  # each task is all of the data once more
    return share * (ours.tasks.count / theirs.tasks.count if repeats else 1)


def _images(data: DataConfig) -> int:
    """Of one pass over all training images; where a size is not known, of a set that no limit cuts."""
    sets = [(one.name, one.train or data.train) for one in data.mix] or [(data.name, data.train)]
    return sum(min(limit or size, size) for name, limit in sets for size in (TRAINING_IMAGES.get(name, limit or 1),))
