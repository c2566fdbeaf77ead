"""Hooks on modules that run eagerly, whatever surrounds them, and are not copied along with a module."""

from __future__ import annotations

import sys
import weakref
from typing import Any, Protocol

import torch
from torch import nn


class Observer(Protocol):
    """What hooks call."""

    def enter(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A module begins to run."""

    def leave(self, output: Any) -> None:
        """A module has run, or failed."""


def hook(module: nn.Module, observer: Observer) -> list[Any]:
    """Let a module call an observer when it begins to run and when it ends; returns handles to remove the hooks.

    >>> class Shape:
    ...     def enter(self, module, args, kwargs):
    ...         print(type(module).__name__, "is given", tuple(args[0].shape))
    ...     def leave(self, output):
    ...         print("and returns", tuple(output.shape))
    >>> layer, observer = nn.Linear(3, 1), Shape()
    >>> handles = hook(layer, observer)
    >>> _ = layer(torch.zeros(8, 3))
    Linear is given (8, 3)
    and returns (8, 1)
    """
    keep_out_of_compiled_graphs(_Hook, "call_eagerly")
    return [
        module.register_forward_pre_hook(_Hook(observer, before=True), with_kwargs=True),
        module.register_forward_hook(_Hook(observer, before=False), with_kwargs=True, always_call=True),
    ]


class _Hook:
    def __init__(self, observer: Observer | None, before: bool) -> None:
        self._observer = weakref.ref(observer) if observer is not None else None
        self._before = before

    def __call__(self, module: nn.Module, args: Any, kwargs: Any, output: Any = None) -> None:
        if torch.compiler.is_dynamo_compiling():
            self.call_eagerly(module, args, kwargs, output)
        else:
            self.call(module, args, kwargs, output)

    def call_eagerly(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        self.call(module, args, kwargs, output)

    def call(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if self._observer is not None and (observer := self._observer()) is not None:
            observer.enter(module, args, kwargs) if self._before else observer.leave(output)

    def __deepcopy__(self, memo: Any) -> _Hook:
        return _Hook(None, self._before)

    def __reduce__(self) -> Any:
        return _Hook, (None, self._before)


def keep_out_of_compiled_graphs(owner: type, name: str) -> None:
    """Let a method run eagerly in compiled models; only where the compiler is in use, since importing it takes seconds.

    The wrapper costs as much as a small operation: call the method only where ``torch.compiler.is_dynamo_compiling()``.

    >>> keep_out_of_compiled_graphs(_Hook, "call_eagerly")
    """
    method = getattr(owner, name)
    if "torch._dynamo" in sys.modules and not hasattr(method, "_torchdynamo_disable"):
        setattr(owner, name, torch.compiler.disable(method))  # type: ignore[no-untyped-call]


def in_backward() -> bool:
    """Whether autograd runs backward now: activation checkpointing then runs modules again.

    >>> in_backward()
    False
    """
    return bool(torch._C._current_graph_task_id() != -1)


def is_transforming() -> bool:
    """Whether ``torch.func`` transforms a function or ``torch.jit.trace`` records one.

    >>> is_transforming(), torch.func.vmap(lambda x: x * is_transforming())(torch.ones(2))
    (False, tensor([1., 1.]))
    """
    return torch._C._functorch.peek_interpreter_stack() is not None or torch._C._is_tracing()
