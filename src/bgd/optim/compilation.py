"""Compile where a compiler is at hand; go on without it where not."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

import bgd


@cache
def can_compile() -> bool:
    """Whether ``torch.compile`` can be expected to work here: for a CPU it needs a C++ compiler.

    >>> can_compile() in (True, False)
    True
    """
    return any(shutil.which(name) for name in ("g++", "clang++", "c++", "cl"))


def first_line(error: Exception) -> str:
    """What an error says first, short enough for a warning.

    >>> first_line(ValueError(" no luck "))
    'no luck'
    """
    return next((line.strip()[:300] for line in str(error).splitlines() if line.strip()), type(error).__name__)


def users_level() -> int:
    """The stack level of the nearest frame that is neither ours nor torch's: where a warning should point.

    >>> users_level() >= 1
    True
    """
    ours = tuple(os.path.dirname(os.path.abspath(module.__file__ or "")) for module in (bgd, torch))
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        frame, level = frame.f_back, level + 1
    return level


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
            f"torch.compile failed on {name.strip('_')}, which goes on uncompiled: {reason}",
            RuntimeWarning,
            stacklevel=users_level(),
        )
        return self.function(*args)
