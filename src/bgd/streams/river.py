"""The learners for live streams, as river estimators: one dict at a time, or a DataFrame.

>>> learner = StreamClassifier()
>>> for a in range(60):
...     learner.learn_one({"size": a % 2, "colour": "red"}, a % 2 == 1)
>>> learner.predict_one({"size": 1, "colour": "red"})
True
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from river import base

from bgd.errors import SettingError
from bgd.streams.classes import MEMBERS as CLASS_MEMBERS
from bgd.streams.classes import ClassMixture
from bgd.streams.encoding import Table, frame_records
from bgd.streams.labels import Labels
from bgd.streams.targets import MEMBERS as TARGET_MEMBERS
from bgd.streams.targets import TargetMixture


class StreamClassifier(base.MiniBatchClassifier):
    """Classes of a stream that may drift, without settings: see :class:`bgd.StreamClassifier`.

    Parameters
    ----------
    seed
        Of the random features.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._mixture = ClassMixture(CLASS_MEMBERS, seed)
        self._labels = Labels()

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn one example."""
        self._learn([x], [y])

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn the rows one after the other, as river expects; scikit-learn's interface learns batches at once.

        A row that cannot be used is refused before any is learnt.
        """
        self._learn(frame_records(X), y.tolist())

    def _learn(self, rows: list[Any], labels: list[Any]) -> None:
        table = _table(self._mixture, rows, labels)
        for y in labels:
            if y is None or y != y:
                raise SettingError(f"y={y!r} is no label: drop that example")
        self._labels.check(labels)
        for row in range(len(table)):
            self._mixture.learn(table.take([row]), self._labels.add(labels[row : row + 1]), np.ones(1))

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """The probability of each class so far; empty before the first example."""
        del kwargs
        if not self._labels.names:
            return {}
        found = self._mixture.proba(_table(self._mixture, [x]))[0]
        return dict(zip(self._labels.names, found.tolist(), strict=True))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """The probability of each class so far, for every row."""
        if not self._labels.names or not len(X):
            return pd.DataFrame(index=X.index)
        found = self._mixture.proba(_table(self._mixture, frame_records(X)))
        return pd.DataFrame(found, index=X.index, columns=self._labels.names)


class StreamRegressor(base.MiniBatchRegressor):
    """Numbers of a stream that may drift, without settings: see :class:`bgd.StreamRegressor`.

    Parameters
    ----------
    seed
        Of the random features.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._mixture = TargetMixture(TARGET_MEMBERS, seed)

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn one example."""
        self._learn([x], [y])

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn the rows one after the other, as river expects; scikit-learn's interface learns batches at once.

        A row that cannot be used is refused before any is learnt.
        """
        self._learn(frame_records(X), y.tolist())

    def _learn(self, rows: list[Any], targets: list[Any]) -> None:
        table = _table(self._mixture, rows, targets)
        for y in targets:
            if not (isinstance(y, int | float | np.number) and math.isfinite(y)):
                raise SettingError(f"y={y!r} is no target: drop that example")
        for row in range(len(table)):
            self._mixture.learn(table.take([row]), np.array([[float(targets[row])]]), np.ones(1))

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The mean of what will be observed; 0 before the first example."""
        return float(self._predict([x])[0])

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """The mean of what will be observed, for every row."""
        return pd.Series(self._predict(frame_records(X)), index=X.index, dtype=float)

    def _predict(self, rows: list[Any]) -> Any:
        if self._mixture.bank is None or not rows:
            return np.zeros(len(rows))
        return self._mixture.predict(_table(self._mixture, rows))[:, 0]


def _table(mixture: ClassMixture | TargetMixture, rows: list[Any], labels: list[Any] | None = None) -> Table:
    """The rows as a table that the mixture accepts."""
    if labels is not None and len(labels) != len(rows):
        raise SettingError(f"X and y have inconsistent numbers of rows: {len(rows)} and {len(labels)}")
    table = Table(None, [dict(row) for row in rows])
    mixture.encoder.check(table)
    return table
