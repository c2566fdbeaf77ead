"""Caches that make a stream fast: bounded, and without any effect on its batches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np

from bgd.scenarios.tasks.transforms import Indices, Pixels
from bgd.scenarios.tasks.types import Samples

Value = TypeVar("Value")


class LastValueCache(Generic[Value]):
    """The value for the latest key, such as the order of the current epoch; older ones are dropped.

    >>> cache = LastValueCache[int]()
    >>> cache.get("a", lambda: 1), cache.get("a", lambda: 2), cache.get("b", lambda: 3)
    (1, 1, 3)
    """

    def __init__(self) -> None:
        self._last: tuple[Hashable, Value] | None = None

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of this key, made where it is not the latest."""
        if self._last is None or self._last[0] != key:
            self._last = (key, make())
        return self._last[1]


class TransformedImageCache:
    """Transformed images of the tasks used last, each image transformed when first needed.

    Permuting 128 images of 1024 pixels costs half of all that a batch costs. A task's images come back for many
    epochs, and few tasks are active at a time, so a copy of those few, in bytes, is kept within a budget.

    Args:
        budget: bytes in all; a task that does not fit into it is transformed again every time.

    >>> import torch
    >>> from bgd.scenarios.tasks.transforms import Permute
    >>> flip = Permute(np.array([1, 0]))
    >>> images = torch.tensor([[[[1, 2]]], [[[3, 4]]]], dtype=torch.uint8)
    >>> samples = Samples(images, torch.zeros(2, dtype=torch.int64), None, flip)
    >>> TransformedImageCache(budget=4).pixels(0, samples, np.array([1, 1])).tolist()
    [[4, 3], [4, 3]]
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._task_caches: OrderedDict[int, _TaskCache] = OrderedDict()

    @property
    def size(self) -> int:
        """Bytes held now."""
        return sum(cache.images.nbytes for cache in self._task_caches.values())

    def pixels(self, task: int, samples: Samples, indices: Indices) -> Pixels:
        """The same as ``samples.pixels(indices)``, in new memory."""
        cache = self._task_caches.get(task)
        if cache is None:
            need = len(samples) * samples.flat[0].nbytes
            if need > self.budget:
                return samples.pixels(indices)
            while self.size + need > self.budget:
                self._task_caches.popitem(last=False)
            cache = self._task_caches[task] = _TaskCache(samples)
        self._task_caches.move_to_end(task)
        return cache.pixels(indices)


class _TaskCache:
    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        # not zeros: the system allocates the pages of an image only when it is first written
        self.images = np.empty((len(samples), samples.flat.shape[1]), dtype=samples.flat.dtype)
        self.known = np.zeros(len(samples), dtype=bool)

    def pixels(self, indices: Indices) -> Pixels:
        known = self.known.take(indices)
        if not known.all():
            new = indices[~known]
            self.images[new] = self.samples.pixels(new)
            self.known[new] = True
        return self.images.take(indices, axis=0)
