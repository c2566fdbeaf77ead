"""Which shapes of a batch are worth a compilation.

Compiling the batched step takes as long as hundreds of steps, and what is compiled serves one shape: under vmap torch
2.13 fixes every size. An epoch ends with a short batch, and each task with one of another size, so that to compile them
all would cost more than it gains. But which code evaluates a batch decides the last bits of its result. So the
decision follows from the batches seen, and the optimizer's state dict holds it: a resumed run goes on bit for bit.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves

LIMIT = 3
"""Compile for so many shapes at most: torch gives up on a function that it compiles more than eight times, and a last
chunk of fewer networks doubles the count."""


def shape_of(batch: tuple[Any, ...]) -> str:
    """The sizes of all tensors of a batch, as a word that a checkpoint can hold.

    >>> import torch
    >>> shape_of((torch.zeros(128, 1024), torch.zeros(128), None))
    '128x1024 128'
    """
    return " ".join("x".join(map(str, leaf.shape)) for leaf in tree_leaves(batch) if isinstance(leaf, Tensor))


class BatchShapes:
    """Compiles for the first shape, and for any other that comes twice in a row: no short last batch does.

    >>> shapes = BatchShapes()
    >>> for shape in ("128", "128", "57", "128", "64", "64"):
    ...     print(shape, shapes.worth_compiling(shape))
    ...     shapes.note(shape)
    128 True
    128 True
    57 False
    128 True
    64 False
    64 True
    """

    def __init__(self) -> None:
        self.compiled: list[str] = []
        self.last = ""

    def worth_compiling(self, shape: str) -> bool:
        """Whether a batch of this shape, the next one, is to run compiled."""
        again = len(self.compiled) < LIMIT and shape == self.last
        return not self.compiled or shape in self.compiled or again

    def note(self, shape: str) -> None:
        """Remember a batch that has been learned from."""
        if self.worth_compiling(shape) and shape not in self.compiled:
            self.compiled.append(shape)
        self.last = shape

    def state_dict(self) -> dict[str, Any]:
        """Plain strings.

        >>> BatchShapes().state_dict()
        {'compiled': [], 'last': ''}
        """
        return {"compiled": list(self.compiled), "last": self.last}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where :meth:`state_dict` was made."""
        self.compiled, self.last = list(state.get("compiled", ())), state.get("last", "")
