r"""The last step to probabilities: one temperature and one rate of wrong labels, learned from the stream.

With q the members' mixture, p = (1 - e) softmax(exp(t) log q) + e / C: members that are linear, or see labels that are
wrong at random, cannot be sure enough where they are right and careful where labels are wrong. t and the log-odds of e
follow the log-loss by running Newton (Fisher) steps over the last examples, on predictions made before learning.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bgd.streams.filters import CALIBRATION_WINDOW, Array, softmax

LEAST = 1e-4
PRIOR = 20.0
"""Curvature of t and of the log-odds of e at first: as if twenty examples had spoken for their initial values."""


class Finish(NamedTuple):
    """t, the log-odds of e, and the curvatures of both."""

    temperature: float = 0.0
    doubt: float = -5.0
    temperature_curvature: float = PRIOR
    doubt_curvature: float = PRIOR


def finished(finish: Finish, mixed: Array) -> Array:
    """The probabilities (B, C) from those of the mixture.

    >>> finished(Finish(doubt=0.0), np.array([[0.9, 0.1]])).round(3).tolist()  # half of the labels are wrong
    [[0.7, 0.3]]
    """
    wrong = _wrong(finish)
    result: Array = (1.0 - wrong) * _sharpened(finish, mixed)[1] + wrong / mixed.shape[1]
    return result


def follow(finish: Finish, mixed: Array, labels: Array, weights: Array) -> tuple[Finish, Array]:
    """The next state, from one-hot labels (B, C) of rows that the members had not learnt, and their probabilities.

    >>> sure, _ = follow(Finish(), np.full((32, 2), [0.7, 0.3]), np.tile([1.0, 0.0], (32, 1)), np.ones(32))
    >>> sure.temperature > 0  # all labels were right: be surer
    True
    """
    logits, sharp = _sharpened(finish, mixed)
    wrong, classes = _wrong(finish), mixed.shape[1]
    own = (sharp * labels).sum(1)
    total = (1.0 - wrong) * own + wrong / classes
    genuine = weights * (1.0 - wrong) * own / total  # how probably the label is right
    slope = float(genuine @ (logits * (labels - sharp)).sum(1))
    bend = float(genuine @ ((sharp * logits * logits).sum(1) - np.square((sharp * logits).sum(1))))
    score = wrong * (1.0 - wrong) * (1.0 / classes - own) / total
    kept = (1.0 - 1.0 / CALIBRATION_WINDOW) ** len(labels)
    curvature = kept * finish.temperature_curvature + bend
    information = kept * finish.doubt_curvature + float(weights @ np.square(score))
    following = Finish(
        _within(finish.temperature + _within(slope / max(curvature, 1e-6), 0.2), 2.0),
        _within(finish.doubt + _within(float(weights @ score) / max(information, 1e-6), 0.3) + 3.75, 3.25) - 3.75,
        curvature,
        information,
    )
    return following, total


def _sharpened(finish: Finish, mixed: Array) -> tuple[Array, Array]:
    logits = math.exp(finish.temperature) * np.log(np.maximum(mixed, LEAST))
    return logits, softmax(logits)


def _wrong(finish: Finish) -> float:
    return 1.0 / (1.0 + math.exp(-finish.doubt))


def _within(value: float, bound: float) -> float:
    return min(max(value, -bound), bound)
