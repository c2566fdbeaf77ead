"""Augmentation of training images: random crops and mirror images, from the stream's own seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bgd.scenarios.errors import ScenarioError
from bgd.scenarios.philox import Purpose, integers, random_words
from bgd.scenarios.tasks.transforms import Indices, Pixels


@dataclass(frozen=True)
class Augment:
    """Every image mirrored with probability 1/2, framed in black, and cropped at a random position to its old size.

    It works on pixels before normalisation, so that the frame is black and not grey. The random numbers of a
    batch depend on (seed, iteration) alone. Test images, and training images replayed at a task's end, stay as they
    are.

    Args:
        crop: width of the frame: the image moves by up to so many pixels each way; 0 for none.
        flip: whether to mirror left and right.

    >>> image = np.array([[1, 2, 3, 4]], dtype=np.uint8)
    >>> moved = {tuple(Augment(crop=1, flip=False)(image, (1, 2, 2), 0, i)[0].tolist()) for i in range(99)}
    >>> len(moved), (1, 2, 3, 4) in moved, (4, 0, 0, 0) in moved
    (9, True, True)
    """

    crop: int = 4
    flip: bool = True

    def __post_init__(self) -> None:
        if self.crop < 0:
            raise ScenarioError(f"augment: crop={self.crop} is negative: give 0 or more pixels")

    def __call__(self, pixels: Pixels, shape: tuple[int, int, int], seed: int, iteration: int) -> Pixels:
        """Augmented pixels (n, D) of the batch of an iteration, in new memory."""
        n = len(pixels)
        for_flip, for_top, for_left = random_words(seed, Purpose.AUGMENT, (iteration, 0), 3 * n).reshape(3, n)
        images = pixels.reshape(n, *shape).copy()
        if self.flip:
            mirrored = integers(for_flip, 2) == 1
            images[mirrored] = images[mirrored, :, :, ::-1]
        if self.crop:
            c, h, w = shape
            framed = np.zeros((n, c, h + 2 * self.crop, w + 2 * self.crop), dtype=pixels.dtype)
            framed[:, :, self.crop : self.crop + h, self.crop : self.crop + w] = images
            positions = 2 * self.crop + 1
            # every possible crop as a view, of which one for each image is copied
            crops = sliding_window_view(framed, (h, w), axis=(2, 3))
            images = crops[np.arange(n), :, integers(for_top, positions), integers(for_left, positions)]
        return images.reshape(n, -1)


def augment_by_task(
    augments: Sequence[Augment | None],
    pixels: Pixels,
    task: int | Indices,
    shape: tuple[int, int, int],
    seed: int,
    iteration: int,
) -> Pixels:
    """The pixels of a batch, each image augmented as its task's images are, or not at all.

    The random numbers of an image depend on its position in the batch, not on the tasks of the others.

    Args:
        augments: of each task; None for none.
        pixels: (n, D) of the batch.
        task: of all images, or of each.
        shape: of an image.
        seed: of the stream.
        iteration: of the batch.

    >>> images = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.uint8)
    >>> moved = Augment(crop=2)
    >>> out = augment_by_task([None, moved], images, np.array([0, 1, 0]), (1, 1, 2), 7, 3)
    >>> out[[0, 2]].tolist(), bool((out[1] == moved(images, (1, 1, 2), 7, 3)[1]).all())
    ([[1, 2], [5, 6]], True)
    """
    if isinstance(task, int):
        augment = augments[task]
        return pixels if augment is None else augment(pixels, shape, seed, iteration)
    moved: dict[Augment | None, Pixels] = {None: pixels}
    present = {t: augments[t] for t in np.unique(task).tolist()}
    for augment in set(present.values()) - {None}:
        assert augment is not None
        moved[augment] = augment(pixels, shape, seed, iteration)
    if len(set(present.values())) == 1:
        return moved[augments[int(task[0])]]
    out = pixels.copy()
    for t, augment in present.items():
        out[task == t] = moved[augment][task == t]
    return out
