"""The user's own data: a folder of ``.npz`` arrays, or two torch data sets."""

from __future__ import annotations

import operator
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from bgd.data.types import DataError, DataSet, Part

_IMAGES, _LABELS = ("images", "x", "X", "data"), ("labels", "y", "targets")


def from_npz(folder: str | Path, name: str | None = None) -> DataSet:
    """Read a data set of the user's own from a folder of ``.npz`` arrays.

    Either ``train.npz`` and ``test.npz``, each with ``images`` (or ``x``) and ``labels`` (or ``y``), or one
    file with ``x_train``, ``y_train``, ``x_test``, ``y_test``. Images are (N, H, W), (N, C, H, W),
    (N, H, W, C) with 1 or 3 channels, or (N, D) for plain features, which become (N, 1, 1, D); integers of 0
    to 255, or floats. Names of the classes may stand in an array ``classes``; else they are numbers. Nothing is
    unpickled.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for which in ("train", "test"):
    ...         np.savez(f"{folder}/{which}.npz", images=np.zeros((4, 8, 8), np.uint8), labels=[0, 1, 0, 1])
    ...     own = from_npz(folder, name="own")
    >>> own.name, tuple(own.train.images.shape), own.classes
    ('own', (4, 1, 8, 8), ('0', '1'))

    Args:
        folder: The folder.
        name: What to call it; else the folder's name.

    Raises:
        DataError: If a file or an array is missing or wrong; names it.
    """
    folder = Path(folder).expanduser()
    halves = [folder / "train.npz", folder / "test.npz"]
    single = sorted(folder.glob("*.npz"))
    if all(path.is_file() for path in halves):
        arrays = [_arrays(path) for path in halves]
        parts = [
            _part(str(path), _pick(path, a, _IMAGES), _pick(path, a, _LABELS))
            for path, a in zip(halves, arrays, strict=True)
        ]
        classes = arrays[0].get("classes")
    elif len(single) == 1:
        both = _arrays(single[0])
        parts = [
            _part(f"{single[0]} ({w})", _pick(single[0], both, (f"x_{w}",)), _pick(single[0], both, (f"y_{w}",)))
            for w in ("train", "test")
        ]
        classes = both.get("classes")
    else:
        raise DataError(
            f"{folder}: needs train.npz and test.npz (images, labels), or one .npz file "
            f"(x_train, y_train, x_test, y_test); "
            f"found {', '.join(path.name for path in single) or 'no .npz file'}"
        )
    names = None if classes is None else [_text(entry) for entry in classes.reshape(-1)]
    return _data_set(name or folder.resolve().name, parts, names)


def from_torch(
    train: Dataset[Any], test: Dataset[Any], name: str = "own", classes: Sequence[str] | None = None
) -> DataSet:
    """Read two torch data sets, whose items are (image, label), into memory.

    Images may be tensors (C, H, W), (H, W) or (D,), numpy arrays or PIL images (H, W) or (H, W, C). uint8
    stays as it is, floats become float32. Any transform is applied once, here: keep random ones for later.

    >>> from torch.utils.data import TensorDataset
    >>> part = TensorDataset(torch.rand(4, 1, 8, 8), torch.tensor([0, 1, 2, 0]))
    >>> from_torch(part, part).classes
    ('0', '1', '2')

    Args:
        train: The training part, with a length.
        test: The test part, with a length.
        name: What to call it.
        classes: Names of the classes; else the training part's own ``classes``, else numbers.

    Raises:
        DataError: If an item is not an image with a label; names its index.
    """
    parts = [_from_items(f"{name} ({which})", items) for which, items in (("train", train), ("test", test))]
    return _data_set(name, parts, classes if classes is not None else getattr(train, "classes", None))


def _data_set(name: str, parts: list[Part], classes: Sequence[str] | None) -> DataSet:
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


def _text(entry: Any) -> str:
    return entry.decode() if isinstance(entry, bytes) else str(entry)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        # numpy leaves a file open that is no zip archive
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    except (OSError, ValueError, EOFError, KeyError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: not a readable .npz file of plain arrays ({error})") from error


def _pick(path: Path, arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> NDArray[Any]:
    for name in names:
        if name in arrays:
            return arrays[name]
    raise DataError(f"{path}: no array named {' or '.join(names)}; it has {', '.join(arrays) or 'none'}")


def _part(where: str, images: NDArray[Any], labels: NDArray[Any], *, channels_first: bool = False) -> Part:
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
        return Part(torch.from_numpy(_pixels(where, images)), torch.from_numpy(labels.astype(np.int64)))
    except DataError as error:
        raise DataError(f"{where}: {error}" if where not in str(error) else str(error)) from error


def _pixels(where: str, images: NDArray[Any]) -> NDArray[Any]:
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


def _from_items(where: str, items: Dataset[Any]) -> Part:
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
    return _part(where, np.stack(images), np.asarray(labels, np.int64), channels_first=True)


def _channels_first(image: Any) -> NDArray[Any]:
    mode = getattr(image, "mode", None)  # of a PIL image
    if mode == "P":
        image = image.convert("RGB")  # from places in its palette, which are no brightness
    elif mode in ("RGBA", "LA", "PA"):
        raise ValueError(f"its mode is {mode}: convert it to RGB or L, without transparency")
    array: NDArray[Any] = image.numpy(force=True) if isinstance(image, Tensor) else np.asarray(image)
    if array.ndim == 3 and not isinstance(image, Tensor):
        array = array.transpose(2, 0, 1)
    return array[None] if array.ndim == 2 else array[None, None] if array.ndim == 1 else array
