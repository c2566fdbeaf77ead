"""When to compile: where there is a compiler, and for shapes of a batch that repeat; eager code otherwise.

Compiling a batched step takes as long as hundreds of steps, and the compiled code serves one shape: under vmap torch
2.13 fixes every size. An epoch ends with a short batch, and each task with one of another size, so that compiling for
all of them would cost more than it gains. But which code evaluates a batch decides the last bits of its result. So the
decision follows from the batches seen, and the optimizer's state dict holds it: a resumed run continues bit for bit.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from bgd.errors import caller_stacklevel


@cache
def can_compile() -> bool:
    """Whether ``torch.compile`` can be expected to work here: for a CPU it needs a C++ compiler.

    >>> can_compile() in (True, False)
    True
    """
    return any(shutil.which(name) for name in ("g++", "clang++", "c++", "cl"))


def first_line(error: Exception) -> str:
    """The first line of an error, short enough for a warning.

    >>> first_line(ValueError(" no luck "))
    'no luck'
    """
    return next((line.strip()[:300] for line in str(error).splitlines() if line.strip()), type(error).__name__)


class CompiledOrEager:
    """A function that is compiled at its first call; where that fails, it runs as it is from then on, after a warning.

    >>> double = CompiledOrEager(lambda x: 2 * x)
    >>> double.compile = False
    >>> double(torch.ones(1))
    tensor([2.])
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.compile: bool | None = None
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        """Call the function, compiled if possible."""
        if self.compile is None:
            self.compile = can_compile()
        if not self.compile:
            return self.function(*args)
        try:
            if self._compiled is None:
                self._compiled = torch.compile(self.function)
            return self._compiled(*args)
        except Exception as error:
            self.compile, reason = False, first_line(error)
        name = getattr(self.function, "__name__", "a function")
        # before the function has done anything: where warnings are errors, nothing is done twice
        warnings.warn(
            f"torch.compile failed on {name.strip('_')}, which continues uncompiled: {reason}",
            RuntimeWarning,
            stacklevel=caller_stacklevel(),
        )
        return self.function(*args)


MAX_COMPILED_SHAPES = 3
"""Compile for so many shapes at most: torch gives up on a function that it compiles more than eight times, and a last
chunk of fewer networks doubles the count."""


def shape_of(batch: tuple[Any, ...]) -> str:
    """The sizes of all tensors of a batch, as a string that a checkpoint can hold.

    >>> shape_of((torch.zeros(128, 1024), torch.zeros(128), None))
    '128x1024 128'
    """
    return " ".join("x".join(map(str, leaf.shape)) for leaf in tree_leaves(batch) if isinstance(leaf, Tensor))


class BatchShapes:
    """Compiles for the first shape, and for any other that comes twice in a row: no short last batch does.

    >>> shapes = BatchShapes()
    >>> for shape in ("128", "128", "57", "128", "64", "64"):
    ...     print(shape, shapes.worth_compiling(shape))
    ...     shapes.record(shape)
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
        again = len(self.compiled) < MAX_COMPILED_SHAPES and shape == self.last
        return not self.compiled or shape in self.compiled or again

    def record(self, shape: str) -> None:
        """Record the shape of a batch that has been learned from."""
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
        """Restore a :meth:`state_dict`."""
        self.compiled, self.last = list(state["compiled"]), state["last"]
