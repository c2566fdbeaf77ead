"""What probabilities are worth: accuracy, log-loss and calibration error over any number of tested batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

SMALLEST = 1e-6
"""A probability below counts as this: a label that was held impossible costs 13.8 nats, and not infinitely many."""

BINS = 15


class Tests:
    """Sums over tested examples: right, log-loss, and the calibration bins.

    >>> import torch
    >>> tests = Tests()
    >>> tests.add(torch.tensor([[0.8, 0.2], [0.6, 0.4]]), torch.tensor([0, 1])).round(decimals=4).tolist()
    [0.2231, 0.9163]
    >>> tests.accuracy, round(tests.log_loss, 4), round(tests.calibration_error, 4)
    (0.5, 0.5697, 0.4)
    """

    __test__ = False  # pytest would collect it by its name

    def __init__(self) -> None:
        self.count, self.loss = 0, 0.0
        self.counts, self.confidence, self.right = ([0.0] * BINS for _ in range(3))

    def add(self, p: Tensor, y: Tensor) -> Tensor:
        """Count predicted probabilities (B, C) for labels (B,); returns the surprises -log p(y).

        A learner that has diverged predicts NaN: that counts as a probability of 0.
        """
        p = p.double().nan_to_num(0.0)
        surprise = -p.gather(1, y[:, None])[:, 0].clamp(min=SMALLEST).log()
        confidence, labels = (part.numpy() for part in p.max(1))
        bins = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
        for total, weights in (
            (self.counts, np.ones_like(confidence)),
            (self.confidence, confidence),
            (self.right, labels == y.numpy()),
        ):
            total[:] = (total + np.bincount(bins, weights, BINS)).tolist()
        self.count += len(y)
        self.loss += float(surprise.sum())
        return surprise

    @property
    def accuracy(self) -> float:
        """The share of right labels."""
        return sum(self.right) / self.count

    @property
    def log_loss(self) -> float:
        """The mean of -log p(y)."""
        return self.loss / self.count

    @property
    def calibration_error(self) -> float:
        """ECE: the mean over bins of |accuracy - confidence|, weighted by their examples."""
        return sum(abs(r - c) for r, c in zip(self.right, self.confidence, strict=True)) / self.count

    def state_dict(self) -> dict[str, Any]:
        """All sums."""
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from other sums."""
        vars(self).update(state)
