"""The embedded data set: 1,797 handwritten digits of 8x8 pixels that scikit-learn carries in its wheel."""

from __future__ import annotations

import numpy as np
import torch

from bgd.data.extras import needs_extra
from bgd.data.types import DataSet, Part, hold_out

ABOUT, IMAGES = "handwritten digits of scikit-learn", "1,442 + 355, 8x8 grey"


def load() -> DataSet:
    """Load the digits, their 17 grey levels scaled to 0 to 255; of each class every fifth is for testing.

    >>> digits = load()
    >>> len(digits.train), len(digits.test), tuple(digits.train.images.shape[1:])
    (1442, 355, (1, 8, 8))
    """
    with needs_extra("scikit-learn"):
        import sklearn.datasets

    pixels, labels = sklearn.datasets.load_digits(return_X_y=True)
    images = torch.from_numpy(np.rint(pixels * (255 / 16)).astype(np.uint8).reshape(-1, 1, 8, 8))
    train, test = hold_out(Part(images, torch.from_numpy(labels.astype(np.int64))), every=5)
    return DataSet("digits", train, test, tuple("0123456789"))
