"""What a stream may remember to be fast: bounded, and without a trace in any result."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np

from bgd.scenarios.tasks.pixels import Pixels, Rows
from bgd.scenarios.tasks.types import Samples

Value = TypeVar("Value")


class LastValueCache(Generic[Value]):
    """The value for the latest key, such as the order of the current epoch; older ones are let go.

    >>> latest = LastValueCache[int]()
    >>> latest.get("a", lambda: 1), latest.get("a", lambda: 2), latest.get("b", lambda: 3)
    (1, 1, 3)
    """

    def __init__(self) -> None:
        self._held: tuple[Hashable, Value] | None = None

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of this key, made where it is not the latest."""
        if self._held is None or self._held[0] != key:
            self._held = (key, make())
        return self._held[1]


class TransformedImageCache:
    """Changed images of the tasks used last, each image changed when first needed.

    Permuting 128 images of 1024 pixels costs half of all that a batch costs. A task's images come back for many
    epochs, and few tasks are active at a time, so a copy of those few, in bytes, is kept within a budget.

    Args:
        budget: bytes in all; a task that does not fit into it is changed anew every time.

    >>> import torch
    >>> from bgd.scenarios.tasks.pixels import Permute
    >>> flip = Permute(np.array([1, 0]))
    >>> images = torch.tensor([[[[1, 2]]], [[[3, 4]]]], dtype=torch.uint8)
    >>> samples = Samples(images, torch.zeros(2, dtype=torch.int64), None, flip)
    >>> TransformedImageCache(budget=4).pixels(0, samples, np.array([1, 1])).tolist()
    [[4, 3], [4, 3]]
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._copies: OrderedDict[int, _Copy] = OrderedDict()

    @property
    def size(self) -> int:
        """Bytes held now."""
        return sum(copy.images.nbytes for copy in self._copies.values())

    def pixels(self, task: int, samples: Samples, where: Rows) -> Pixels:
        """The same as ``samples.pixels(where)``, in new memory."""
        copy = self._copies.get(task)
        if copy is None:
            need = len(samples) * samples.flat[0].nbytes
            if need > self.budget:
                return samples.pixels(where)
            while self.size + need > self.budget:
                self._copies.popitem(last=False)
            copy = self._copies[task] = _Copy(samples)
        self._copies.move_to_end(task)
        return copy.pixels(where)


class _Copy:
    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        # not zeros: the system hands out the pages of an image only when it is first written
        self.images = np.empty((len(samples), samples.flat.shape[1]), dtype=samples.flat.dtype)
        self.known = np.zeros(len(samples), dtype=bool)

    def pixels(self, where: Rows) -> Pixels:
        known = self.known.take(where)
        if not known.all():
            new = where[~known]
            self.images[new] = self.samples.pixels(new)
            self.known[new] = True
        return self.images.take(where, axis=0)
