"""Arrays of the user's own, in the shapes and number types in use, as a data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from bgd.data.types import DataError, DataSet, Part


def from_arrays(
    train_x: ArrayLike | Tensor,
    train_y: ArrayLike | Tensor,
    test_x: ArrayLike | Tensor,
    test_y: ArrayLike | Tensor,
    *,
    name: str = "own",
    classes: Sequence[str] | None = None,
) -> DataSet:
    """Make a data set of four arrays or tensors.

    Images are (N, H, W), (N, C, H, W), or (N, D) for plain features, which become (N, 1, 1, D); integers of 0 to
    255, or floats. An array (but not a tensor) may also be (N, H, W, C) with 1 or 3 channels.

    >>> x, y = np.zeros((4, 8, 8), np.uint8), [0, 1, 0, 1]
    >>> from_arrays(x, y, torch.zeros(2, 8, 8, dtype=torch.uint8), torch.tensor([0, 1]))
    DataSet('own', 2 classes, train=Part(4 images, uint8 1x8x8), test=Part(2 images, uint8 1x8x8))
    >>> from_arrays(x, y, x, [0.5, 1, 0, 1])
    Traceback (most recent call last):
    bgd.data.types.DataError: own (test): labels must be integers (N,), not float64 (4,)

    Args:
        train_x: Training images or features.
        train_y: Their labels, from 0.
        test_x: Test images or features.
        test_y: Their labels.
        name: The name of the data set.
        classes: Names of the classes; else they are numbers.

    Raises:
        DataError: If an array is wrong; names it.
    """
    parts = []
    for which, x, y in (("train", train_x, train_y), ("test", test_x, test_y)):
        where = f"{name} ({which})"
        channels_first = isinstance(x, Tensor)
        parts.append(make_part(where, _to_numpy(where, x), _to_numpy(where, y), channels_first=channels_first))
    return make_data_set(name, parts, classes)


def make_data_set(name: str, parts: Sequence[Part], classes: Sequence[str] | None) -> DataSet:
    """Make a data set of its train and test part; without names of the classes these are numbers.

    >>> part = Part(torch.zeros(2, 1, 4, 4), torch.tensor([0, 1]))
    >>> make_data_set("two", [part, part], None).classes
    ('0', '1')
    """
    train, test = parts
    if classes is None:
        count = 1 + max(int(part.labels.max()) if len(part) else 0 for part in (train, test))
        if count > max(len(train) + len(test), 1):  # a missing label, -1 in an unsigned type, would make billions
            raise DataError(
                f"{name}: the label {count - 1} is larger than {len(train) + len(test)} images can have classes for: "
                "correct it, or name the classes"
            )
        classes = [str(label) for label in range(max(count, 0))]
    return DataSet(name, train, test, tuple(classes))


def make_part(where: str, images: NDArray[Any], labels: NDArray[Any], *, channels_first: bool = False) -> Part:
    """Make a part of arrays in any of the shapes in use; ``where`` names their origin in errors.

    >>> make_part("a.npz", np.zeros((2, 8, 8, 3)), np.array([[0], [1]]))
    Part(2 images, float32 3x8x8)
    """
    labels = labels.reshape(-1) if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise DataError(f"{where}: labels must be integers (N,), not {labels.dtype} {labels.shape}")
    if images.ndim == 2:
        images = images[:, None, None, :]
    elif images.ndim == 3:
        images = images[:, None]
    elif images.ndim == 4 and not channels_first and images.shape[1] not in (1, 3):
        if images.shape[-1] == 4 and images.shape[1] == images.shape[2]:
            raise DataError(f"{where}: images {images.shape} look like RGBA: leave out the last channel, or transpose")
        if images.shape[-1] in (1, 3):
            images = images.transpose(0, 3, 1, 2)
    elif images.ndim != 4:
        raise DataError(f"{where}: images must have 2 to 4 dimensions, not {images.ndim}: {images.shape}")
    try:
        return Part(torch.from_numpy(_to_pixels(where, images)), torch.from_numpy(labels.astype(np.int64)))
    except DataError as error:
        raise DataError(f"{where}: {error}" if where not in str(error) else str(error)) from error


def _to_pixels(where: str, images: NDArray[Any]) -> NDArray[Any]:
    if np.issubdtype(images.dtype, np.floating):
        return np.ascontiguousarray(images, dtype=np.float32)
    if images.dtype == np.bool_:
        return np.ascontiguousarray(images).astype(np.uint8) * np.uint8(255)
    if not np.issubdtype(images.dtype, np.integer):
        raise DataError(f"{where}: images must be numbers, not {images.dtype}")
    if images.size and not 0 <= images.min() <= images.max() <= 255:
        raise DataError(
            f"{where}: integer pixels must be 0 to 255, found {images.min()} to {images.max()}; "
            f"give floats for other ranges"
        )
    return np.ascontiguousarray(images, dtype=np.uint8)


def _to_numpy(where: str, array: ArrayLike | Tensor) -> NDArray[Any]:
    try:
        if isinstance(array, Tensor):
            # numpy has no bfloat16
            return np.asarray((array.float() if array.dtype == torch.bfloat16 else array).numpy(force=True))
        return np.asarray(array)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{where}: not an array of numbers: {error}") from error
