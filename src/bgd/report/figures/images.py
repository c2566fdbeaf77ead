"""Sample images of a data set, by class."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from bgd.data.types import DataError, DataSet
from bgd.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpec

MOST_ROWS = 20
"""Up to so many classes get a row each; more share a grid with one sample each."""


def draw_grid(data_set: DataSet, per_class: int = 10, seed: int = 0, part: str = "train") -> Figure:
    """Draw samples of every class: a labelled row each, or for many classes a grid with one sample each.

    >>> from bgd.data import load
    >>> figure = draw_grid(load("digits"), per_class=3)
    >>> len(figure.axes)
    30

    Args:
        data_set: The images.
        per_class: Samples of each class, where classes have rows of their own.
        seed: Which samples.
        part: ``train`` or ``test``.
    """
    if per_class < 1:
        raise DataError(f"at least one sample per class is needed, not {per_class}")
    if part not in ("train", "test"):
        raise DataError(f"no part '{part}': there are train and test")
    samples = data_set.train if part == "train" else data_set.test
    generator = torch.Generator().manual_seed(seed)
    in_rows = len(data_set.classes) <= MOST_ROWS
    columns = per_class if in_rows else 10
    figure, grid = _make_grid(data_set, columns, in_rows, part)
    for label, name in enumerate(data_set.classes):
        members = (samples.labels == label).nonzero().flatten()
        chosen = members[torch.randperm(len(members), generator=generator)[: per_class if in_rows else 1]]
        cells = [(label, k) for k in range(columns)] if in_rows else [divmod(label, columns)]
        for k, (line, column) in enumerate(cells):
            axes = figure.add_subplot(grid[line, column])
            axes.set_axis_off()
            if k < len(chosen):
                _draw_image(axes, samples.images[chosen[k]])
            if in_rows and k == 0:
                axes.text(-0.12, 0.5, name, transform=axes.transAxes, ha="right", va="center", fontsize=9)
            elif not in_rows:
                axes.set_title(name, fontsize=6.5, pad=2)
    return figure


def save_grid(data_set: DataSet, path: str | Path, per_class: int = 10, seed: int = 0, part: str = "train") -> Path:
    """Write the figure of :func:`draw_grid` as a PNG file, whole or not at all, and return its full path."""
    path = Path(path).expanduser().absolute()
    buffer = io.BytesIO()
    draw_grid(data_set, per_class, seed, part).savefig(buffer, format="png", dpi=150)
    try:
        write_atomically(path, buffer.getvalue())
    except OSError as error:
        raise DataError(f"cannot write the picture {path}: {error}") from error
    return path


def _make_grid(data_set: DataSet, columns: int, in_rows: bool, part: str) -> tuple[Figure, GridSpec]:
    """A figure with its title, and a cell for each image; sizes in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = len(data_set.classes) if in_rows else math.ceil(len(data_set.classes) / columns)
    margin = 0.085 * max(len(name) for name in data_set.classes) + 0.25 if in_rows else 0.2
    used = margin + (0.72 if in_rows else 1.05) * columns
    width = max(used + 0.1, 4.5)  # room for the title in any case
    height = (0.72 if in_rows else 0.98) * lines + 0.75
    figure = Figure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    spare = (width - used - 0.1) / 2
    across = {"left": (margin + spare) / width, "right": (used + spare) / width, "wspace": 0.08}
    down = {"bottom": 0.1 / height, "top": 1 - 0.65 / height, "hspace": 0.08 if in_rows else 0.35}
    count = f"{len(data_set.train):,} + {len(data_set.test):,} images"
    figure.suptitle(f"{data_set.name} ({part}), {count}", y=1 - 0.2 / height, va="top", fontsize=11)
    return figure, figure.add_gridspec(lines, columns, **across, **down)


def _draw_image(axes: Axes, image: Tensor) -> None:
    if image.dtype != torch.uint8:  # floats may have any range: show each image over its own
        low, high = image.min(), image.max()
        image = ((image - low) / (high - low).clamp_min(1e-12) * 255).to(torch.uint8)
    pixels = np.ascontiguousarray(image.permute(1, 2, 0).numpy())
    if pixels.shape[2] == 3:
        axes.imshow(pixels, interpolation="nearest")
    else:
        axes.imshow(pixels[..., 0], cmap="gray", vmin=0, vmax=255, interpolation="nearest")
