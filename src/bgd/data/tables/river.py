"""Streams that come with river: tables in its wheel, and generators whose concept changes at known times."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bgd.data.extras import needs_extra

if TYPE_CHECKING:
    import pandas as pd

Rows = Iterable[tuple[dict[Any, Any], Any]]


def _river() -> tuple[Any, Any]:
    with needs_extra("river", "streams"):
        from river import datasets
        from river.datasets import synth
    return datasets, synth


def _frame(rows: Rows) -> pd.DataFrame:
    with needs_extra("pandas", "experiments"):
        import pandas as pd
    features, labels = zip(*rows, strict=True)
    return pd.DataFrame([{str(key): value for key, value in row.items()} for row in features]).assign(label=labels)


def _bundled(name: str) -> Callable[[int], pd.DataFrame]:
    """In the published order with seed 0, else shuffled: these tables have no time of their own."""

    def load(seed: int) -> pd.DataFrame:
        frame = _frame(getattr(_river()[0], name)())
        return frame if seed == 0 else frame.iloc[np.random.default_rng(seed).permutation(len(frame))]

    return load


def _concepts(concepts: int | tuple[int, ...], length: int, generator: str, **settings: Any) -> Any:
    """One concept after the other, with sudden switches; every part has a seed of its own."""
    which = range(concepts) if isinstance(concepts, int) else concepts
    argument = "variant" if generator == "SEA" else "classification_function"

    def load(seed: int) -> pd.DataFrame:
        make = getattr(_river()[1], generator)
        parts = (
            make(**{argument: concept}, seed=100 * seed + part, **settings).take(length)
            for part, concept in enumerate(which)
        )
        return _frame(itertools.chain.from_iterable(parts))

    return load


def _hyperplane(seed: int) -> pd.DataFrame:
    make = _river()[1].Hyperplane
    settings = {"n_features": 10, "n_drift_features": 5, "mag_change": 0.001, "noise_percentage": 0.05}
    return _frame(make(seed=seed, **settings).take(10_000))


def _led(seed: int) -> pd.DataFrame:
    make = _river()[1].LEDDrift
    return _frame(make(seed=seed, noise_percentage=0.1, irrelevant_features=True, n_drift_features=7).take(10_000))


RIVER_TABLES: dict[str, Callable[[int], pd.DataFrame]] = {
    "river-phishing": _bundled("Phishing"),
    "river-image-segments": _bundled("ImageSegments"),
    "river-bananas": _bundled("Bananas"),
    "river-sea": _concepts((0, 1, 2, 3, 0, 2), 2000, "SEA", noise=0.1),
    "river-hyperplane": _hyperplane,
    "river-led-drift": _led,
    "river-agrawal": _concepts(6, 2000, "Agrawal"),
}
"""By name: a function of the seed, which shuffles a table or generates a stream."""
