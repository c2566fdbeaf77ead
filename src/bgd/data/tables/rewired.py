"""A stream whose sensors are rewired twice: the embedded digits, of which nobody says when their pixels move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bgd.data.formats.digits import load
from bgd.data.types import DataSet

if TYPE_CHECKING:
    import pandas as pd

TIMES = 3
"""The digits pass so often: as they are, and then with their 64 pixels in another order each time."""


def rewired_digits(seed: int) -> pd.DataFrame:
    """All 1,797 digits three times, each time in another order of images and, from the second time on, of pixels.

    Args:
        seed: of all orders.

    >>> frame = rewired_digits(seed=1)
    >>> frame.shape, int(frame["label"].iloc[0]) in range(10)
    ((5391, 65), True)
    """
    import pandas as pd

    images, labels = _all(load())
    rng = np.random.default_rng(seed)
    rows, targets = [], []
    for time in range(TIMES):
        order = rng.permutation(len(images))
        wires = rng.permutation(images.shape[1]) if time else np.arange(images.shape[1])
        rows.append(images[order][:, wires])
        targets.append(labels[order])
    names = [f"sensor {i}" for i in range(images.shape[1])]
    return pd.DataFrame(np.concatenate(rows), columns=names).assign(label=np.concatenate(targets))


def _all(data: DataSet) -> tuple[np.ndarray, np.ndarray]:
    """Images as rows, training and test together: a stream tests each before it is learnt."""
    parts = (data.train, data.test)
    images = np.concatenate([part.images.flatten(1).numpy() for part in parts]).astype(np.float64)
    return images, np.concatenate([part.labels.numpy() for part in parts])
