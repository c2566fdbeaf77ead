"""SVHN, house numbers in street photographs, cropped to single digits: two MATLAB files."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from bgd.data.extras import needs_extra
from bgd.data.sources.published import Content, Edition, File, Published
from bgd.data.types import DataError, Part


def read_mat(content: Content) -> Part:
    """Read ``X`` (32 x 32 x 3 x N, uint8) and ``y`` (1 to 10; 10 is the digit 0) from a ``.mat`` file."""
    with needs_extra("scipy"):
        import scipy.io

    try:
        file: Any = io.BytesIO(content.data)  # loadmat reads it, though its stubs allow paths only
        arrays = scipy.io.loadmat(file, variable_names=("X", "y"))
    except Exception as error:  # a damaged file makes scipy raise almost anything
        raise DataError(f"{content.where}: truncated or damaged: not a readable .mat file ({error})") from error
    if missing := {"X", "y"} - arrays.keys():
        raise DataError(f"{content.where}: no array named {' nor '.join(sorted(missing))} in this .mat file")
    pixels, labels = np.asarray(arrays["X"]), np.asarray(arrays["y"]).reshape(-1)
    if pixels.ndim == 3:
        pixels = pixels[..., None]  # MATLAB drops a last dimension of 1
    if pixels.ndim != 4 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise DataError(f"{content.where}: X should be uint8 H x W x 3 x N, not {pixels.dtype} {pixels.shape}")
    if pixels.shape[3] != len(labels):
        raise DataError(f"{content.where}: {pixels.shape[3]} images in X but {len(labels)} labels in y")
    if not np.isin(labels, np.arange(1, 11)).all():
        raise DataError(f"{content.where}: labels in y must be 1 to 10, found {labels.min()} to {labels.max()}")
    images = torch.from_numpy(np.ascontiguousarray(pixels.transpose(3, 2, 0, 1)))
    return Part(images, torch.from_numpy(labels.astype(np.int64) % 10))


def _decode(contents: Mapping[str, Content]) -> tuple[Part, Part]:
    return read_mat(contents["train_32x32.mat"]), read_mat(contents["test_32x32.mat"])


SVHN = Published(
    name="svhn",
    about="digits of house numbers",
    images="73,257 + 26,032, 32x32 colour",
    classes=tuple("0123456789"),
    folders=("svhn", "SVHN", "."),
    licence="non-commercial use only",
    editions=(
        Edition(
            files=(
                File("train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373"),
                File("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3"),
            ),
            decode=_decode,
            mirrors=("http://ufldl.stanford.edu/housenumbers",),
        ),
    ),
)
