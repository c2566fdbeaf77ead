"""The streams of ``benchmarks/streams.py``, as rows of features (dicts, in time order) and labels.

Reported: six streams. Development: the others, on which the settings of ``bgd.streams`` were chosen; streams like two
of the six were added to those after a first look at the six (docs/streams.md). Everything is in river's wheel or
scikit-learn's; generators are functions of the seed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from river import datasets
from river.datasets import synth

Row = dict[Any, Any]


@dataclass(frozen=True)
class Data:
    """A stream: its rows and labels in time order, and the same rows as numbers."""

    rows: list[Row]
    labels: list[Any]

    @property
    def x(self) -> np.ndarray:
        """The rows as numbers."""
        names = list(self.rows[0])
        return np.array([[float(row[name]) for name in names] for row in self.rows])

    @property
    def codes(self) -> np.ndarray:
        """Labels as whole numbers, in sorted order."""
        return np.unique([str(label) for label in self.labels], return_inverse=True)[1]


def _collect(stream: Iterable[tuple[Row, Any]]) -> Data:
    rows, labels = zip(*stream, strict=True)
    return Data(list(rows), list(labels))


def _shuffled(data: Data, seed: int) -> Data:
    """Seed 0 is the published order."""
    order = np.random.default_rng(seed).permutation(len(data.rows)) if seed else range(len(data.rows))
    return Data([data.rows[i] for i in order], [data.labels[i] for i in order])


def _concepts(make: Callable[[int, int], Any], concepts: list[int], length: int, seed: int) -> Data:
    """One concept after the other, with abrupt switches; every part has a seed of its own."""
    parts = (make(concept, 100 * seed + part).take(length) for part, concept in enumerate(concepts))
    return _collect(itertools.chain.from_iterable(parts))


def _numbered(stream: Iterable[tuple[Row, Any]]) -> Iterator[tuple[Row, Any]]:
    """Categories that are strings become whole numbers, for learners of numbers alone."""
    codes: dict[Any, int] = {}
    for row, label in stream:
        yield {k: codes.setdefault(v, len(codes)) if isinstance(v, str) else v for k, v in row.items()}, label


def _scikit(load: Callable[..., Any], seed: int) -> Data:
    x, y = load(return_X_y=True)
    return _shuffled(Data([dict(enumerate(row.tolist())) for row in x], y.tolist()), seed + 1)


def _agrawal(concept: int, seed: int) -> Any:
    return synth.Agrawal(classification_function=concept, seed=seed)


def _hyperplane(seed: int, n: int = 10_000) -> Data:
    make = synth.Hyperplane(seed=seed, n_features=10, n_drift_features=5, mag_change=0.001, noise_percentage=0.05)
    return _collect(make.take(n))


def _led(seed: int) -> Data:
    make = synth.LEDDrift(seed=seed, noise_percentage=0.1, irrelevant_features=True, n_drift_features=7)
    return _collect(make.take(10_000))


def _friedman(seed: int) -> Data:
    """Friedman's function with a drift, in four classes by fixed thresholds."""
    make = synth.FriedmanDrift(drift_type="lea", position=(2000, 4000, 6000), seed=seed)
    return _collect((row, int(np.digitize(y, [10.0, 14.0, 18.0]))) for row, y in make.take(8000))


REPORTED: dict[str, Callable[[int], Data]] = {
    "Phishing": lambda seed: _shuffled(_collect(datasets.Phishing()), seed),
    "ImageSegments": lambda seed: _shuffled(_collect(datasets.ImageSegments()), seed),
    "SEA": lambda seed: _concepts(lambda c, s: synth.SEA(variant=c, noise=0.1, seed=s), [0, 1, 2, 3, 0, 2], 2000, seed),
    "Hyperplane": _hyperplane,
    "LED drift": _led,
    "Agrawal": lambda seed: _concepts(_agrawal, [0, 1, 2, 3, 4, 5], 2000, seed),
}

DEVELOPMENT: dict[str, Callable[[int], Data]] = {
    "Bananas": lambda seed: _shuffled(_collect(datasets.Bananas()), seed),
    "SolarFlare": lambda seed: _shuffled(
        _collect((row, int(y["c-class-flares"] > 0)) for row, y in _numbered(datasets.SolarFlare())), seed
    ),
    "Shuttle": lambda seed: _shuffled(_collect(datasets.Shuttle().take(6000)), seed),
    "Sine": lambda seed: _concepts(
        lambda c, s: synth.Sine(classification_function=c, seed=s, has_noise=True), [0, 1, 2, 3], 2000, seed
    ),
    "STAGGER": lambda seed: _concepts(
        lambda c, s: synth.STAGGER(classification_function=c, seed=s), [0, 1, 2, 0], 1000, seed
    ),
    "Mixed": lambda seed: _concepts(
        lambda c, s: synth.Mixed(classification_function=c, seed=s), [0, 1, 0, 1], 1500, seed
    ),
    "RBF drift": lambda seed: _collect(
        synth.RandomRBFDrift(
            seed_model=seed,
            seed_sample=seed,
            n_classes=5,
            n_features=10,
            n_centroids=40,
            change_speed=0.002,
            n_drift_centroids=20,
        ).take(8000)
    ),
    "Random tree": lambda seed: _collect(
        _numbered(synth.RandomTree(seed_tree=seed, seed_sample=seed, n_classes=3).take(8000))
    ),
    "Waveform": lambda seed: _collect(synth.Waveform(seed=seed, has_noise=True).take(5000)),
    "Friedman": _friedman,
    "Digits": lambda seed: _scikit(__import__("sklearn.datasets").datasets.load_digits, seed),
    "Wine": lambda seed: _scikit(__import__("sklearn.datasets").datasets.load_wine, seed),
    "Breast cancer": lambda seed: _scikit(__import__("sklearn.datasets").datasets.load_breast_cancer, seed),
}

STREAMS = REPORTED | DEVELOPMENT
