"""The learners that ``benchmarks/streams.py`` compares: all predict probabilities of a batch, then learn it once.

The networks are given what a stream does not give: the number of classes and of features. All of them see features on
a running standardisation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from river import compose, forest, linear_model, multiclass, preprocessing, tree
from torch.nn.functional import cross_entropy

from bgd import BGD, StreamClassifier

Rows = list[dict[Any, Any]]


class Learner(Protocol):
    """Predicts a batch, then learns it."""

    def predict(self, rows: Rows, x: np.ndarray) -> np.ndarray:
        """Probabilities, one row per example."""

    def learn(self, rows: Rows, x: np.ndarray, y: np.ndarray) -> None:
        """One update."""


class River:
    """One of river's classifiers."""

    def __init__(self, model: Any, n_classes: int) -> None:
        self.model, self.n_classes = model, n_classes

    def predict(self, rows: Rows, x: np.ndarray) -> np.ndarray:
        """Probabilities, one row per example."""
        found = [self.model.predict_proba_one(row) for row in rows]
        return np.array([[p.get(c, 0.0) for c in range(self.n_classes)] for p in found])

    def learn(self, rows: Rows, x: np.ndarray, y: np.ndarray) -> None:
        """One update."""
        for row, label in zip(rows, y, strict=True):
            self.model.learn_one(row, int(label))


class Network:
    """An MLP of two hidden layers and an optimizer."""

    def __init__(
        self, make: Callable[[Any], Any], n_features: int, n_classes: int, seed: int, width: int = 100
    ) -> None:
        torch.manual_seed(seed)
        sizes = [n_features, width, width, n_classes]
        layers = [m for i, o in itertools.pairwise(sizes) for m in (torch.nn.Linear(i, o), torch.nn.ReLU())]
        self.net = torch.nn.Sequential(*layers[:-1])
        self.optimizer = make(self.net.parameters())
        self.n, self.mean, self.square = 0, np.zeros(n_features), np.zeros(n_features)

    def _encode(self, x: np.ndarray) -> torch.Tensor:
        scale = np.sqrt(self.square / self.n) if self.n > 1 else np.ones_like(self.mean)
        return torch.from_numpy((x - self.mean) / np.where(scale > 0, scale, 1.0)).float()

    def predict(self, rows: Rows, x: np.ndarray) -> np.ndarray:
        """Probabilities, one row per example."""
        self.net.eval()
        with torch.no_grad():
            return self.net(self._encode(x)).softmax(1).numpy()

    def learn(self, rows: Rows, x: np.ndarray, y: np.ndarray) -> None:
        """One update."""
        for row in x:
            self.n += 1
            shift = row - self.mean
            self.mean += shift / self.n
            self.square += shift * (row - self.mean)
        self.net.train()
        self.optimizer.zero_grad()
        cross_entropy(self.net(self._encode(x)), torch.from_numpy(y)).backward()
        self.optimizer.step()


class Ours:
    """``StreamClassifier()``, without settings."""

    def __init__(self, n_classes: int, seed: int) -> None:
        self.model, self.n_classes = StreamClassifier(random_state=seed), n_classes

    def predict(self, rows: Rows, x: np.ndarray) -> np.ndarray:
        """Probabilities, one row per example."""
        p = np.full((len(x), self.n_classes), 1.0 / self.n_classes)
        if hasattr(self.model, "classes_"):
            p[:] = 0.0
            p[:, self.model.classes_] = self.model.predict_proba(x)
        return p

    def learn(self, rows: Rows, x: np.ndarray, y: np.ndarray) -> None:
        """One update."""
        self.model.partial_fit(x, y)


def _logistic() -> Any:
    return compose.Pipeline(
        preprocessing.StandardScaler(), multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    )


TUNED = {"SGD": (0.01, 0.03, 0.1, 0.3, 1.0), "Adam": (0.0003, 0.001, 0.003, 0.01, 0.03)}
"""Step sizes to choose from, per stream and size of batch, by accuracy on a seed that is not reported."""

NAMES = ("StreamClassifier", "SGD", "Adam", "BGD", "logistic regression", "Hoeffding adaptive tree", "adaptive forest")


def learner(name: str, n_features: int, n_classes: int, seed: int, lr: float | None = None) -> Learner:
    """A fresh learner."""
    match name:
        case "StreamClassifier":
            return Ours(n_classes, seed)
        case "SGD":
            return Network(lambda p: torch.optim.SGD(p, lr=lr or 0.1), n_features, n_classes, seed)
        case "Adam":
            return Network(lambda p: torch.optim.Adam(p, lr=lr or 0.01), n_features, n_classes, seed)
        case "BGD":
            return Network(lambda p: BGD(p, seed=seed), n_features, n_classes, seed)
        case "logistic regression":
            binary = preprocessing.StandardScaler() | linear_model.LogisticRegression()
            return River(binary if n_classes == 2 else _logistic(), n_classes)
        case "Hoeffding adaptive tree":
            return River(tree.HoeffdingAdaptiveTreeClassifier(seed=seed), n_classes)
        case "adaptive forest":
            return River(forest.ARFClassifier(seed=seed), n_classes)
    raise ValueError(f"no learner {name!r}: choose one of {', '.join(NAMES)}")
