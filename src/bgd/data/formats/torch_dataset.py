"""Two torch data sets, read item by item into memory."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from bgd.data.formats.arrays import make_data_set, make_part
from bgd.data.types import DataError, DataSet, Part


def from_torch(
    train: Dataset[Any], test: Dataset[Any], name: str = "own", classes: Sequence[str] | None = None
) -> DataSet:
    """Read two torch data sets, whose items are (image, label), into memory.

    Images may be tensors (C, H, W), (H, W) or (D,), numpy arrays or PIL images (H, W) or (H, W, C). uint8
    stays as it is, floats become float32. Any transform is applied once, while reading: apply random ones later.

    >>> import torch
    >>> from torch.utils.data import TensorDataset
    >>> part = TensorDataset(torch.rand(4, 1, 8, 8), torch.tensor([0, 1, 2, 0]))
    >>> from_torch(part, part).classes
    ('0', '1', '2')

    Args:
        train: The training part, with a length.
        test: The test part, with a length.
        name: The name of the data set.
        classes: Names of the classes; else the training part's own ``classes``, else numbers.

    Raises:
        DataError: If an item is not an image with a label; names its index.
    """
    parts = [_read_items(f"{name} ({which})", items) for which, items in (("train", train), ("test", test))]
    return make_data_set(name, parts, classes if classes is not None else getattr(train, "classes", None))


def _read_items(where: str, items: Dataset[Any]) -> Part:
    if not hasattr(items, "__len__"):
        raise DataError(f"{where}: a data set with a length is needed, not {type(items).__name__}")
    images, labels = [], []
    for index in range(len(items)):
        try:
            image, label = items[index]
            images.append(_channels_first(image))
            labels.append(operator.index(label.item() if hasattr(label, "item") else label))
        except (TypeError, ValueError, RuntimeError) as error:
            raise DataError(f"{where}: item {index} is not an (image, label) pair: {error}") from error
        if images[-1].shape != images[0].shape:
            raise DataError(f"{where}: item {index} has shape {images[-1].shape}, but item 0 {images[0].shape}")
    if not images:
        raise DataError(f"{where}: is empty")
    return make_part(where, np.stack(images), np.asarray(labels, np.int64), channels_first=True)


def _channels_first(image: Any) -> NDArray[Any]:
    mode = getattr(image, "mode", None)  # of a PIL image
    if mode == "P":
        image = image.convert("RGB")  # palette indices are no brightness
    elif mode in ("RGBA", "LA", "PA"):
        raise ValueError(f"its mode is {mode}: convert it to RGB or L, without transparency")
    array: NDArray[Any] = image.numpy(force=True) if isinstance(image, Tensor) else np.asarray(image)
    if array.ndim == 3 and not isinstance(image, Tensor):
        array = array.transpose(2, 0, 1)
    return array[None] if array.ndim == 2 else array[None, None] if array.ndim == 1 else array
