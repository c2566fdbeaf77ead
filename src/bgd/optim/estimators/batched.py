"""The batched estimator: all sampled networks in one pass through vmap."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.modules.conv import _ConvNd

from bgd.errors import caller_stacklevel
from bgd.optim.compilation import BatchShapes, can_compile, first_line, shape_of
from bgd.optim.estimators.base import Estimator, Expectations, Step
from bgd.optim.estimators.loop import loop
from bgd.validation import check_whole

Tensors = tuple[Tensor, ...]

PATHS = ("compiled", "eager", "loop")
"""Ways to evaluate the networks, the fastest first: vmap compiled, vmap eager, one network at a time."""


SIDE_BY_SIDE = 24 << 20
"""Bytes of weights that are evaluated at a time on a CPU: more leave its cache, and cost up to twice as much."""


EAGER_WEIGHTS = 1 << 15
"""Networks of more weights than this are faster one after the other than side by side in eager code on a CPU."""


def chunk_that_fits(count: int, params: Sequence[Tensor]) -> int:
    """How many of ``count`` networks to evaluate at a time: the most that fit into a CPU's cache, in equal chunks.

    >>> chunk_that_fits(10, [torch.empty(1000, 1000)]), chunk_that_fits(10, [torch.empty(2000, 1000)])
    (5, 2)
    """
    if any(p.device.type != "cpu" for p in params):
        return count
    size = sum(p.numel() * p.element_size() for p in params)
    return max(d for d in range(1, count + 1) if count % d == 0 and (d == 1 or d * size <= SIDE_BY_SIDE))


class Objective(Protocol):
    """The loss of one network on one batch, as a scalar: ``objective(net, *batch)``."""

    def __call__(self, net: Callable[..., Any], *batch: Any) -> Tensor:
        """Call ``net`` where you would call the model."""
        ...


class Steppable(Protocol):
    """What a batched step needs of its optimizer."""

    batch_shapes: BatchShapes

    def step_with(self, estimator: Estimator, *, batch_size: int | None = None) -> Tensor | None:
        """Take one step with the expectations of an estimator."""

    def name_of(self, p: Tensor) -> str:
        """A parameter's name, for messages."""


class BatchedStep:
    """One BGD step with all K networks evaluated in one pass: the same numbers as ``step(closure)``, sooner.

    The networks run side by side through ``torch.func.vmap``, in chunks of ``chunk_size`` where memory is short, and
    compiled where there is a compiler. A model that cannot run so (batch normalisation that updates its statistics in
    place, control flow that depends on data) runs network by network instead, after one warning that names the reason.

    On a CPU a model with convolutions, or one of more than 32,768 weights without a compiler, runs network by network
    from the start, unless ``chunk_size`` or ``compile=True`` is given: networks side by side only leave the cache, and
    convolutions become one in groups, which does the same work less well. What does make convolutions faster on a CPU,
    those of SGD alike, is ``model.to(memory_format=torch.channels_last)`` before the optimizer is made.

    Compiled code serves one shape of batch. Batches of another shape, such as the short last one of an epoch, run
    uncompiled until two of a shape come in a row: see :mod:`bgd.optim.compilation`.

    Args:
        optimizer: the posterior to update.
        model: the model that holds the optimizer's parameters.
        objective: ``objective(net, *batch)`` returns the loss, a sum or a mean as the optimizer's ``reduction`` has it.
            Call ``net`` in it where you would call the model.
        chunk_size: how many networks to evaluate, and hold in memory, at a time; None for the choice above: as many
            as :func:`chunk_that_fits`, or one by one where that is faster.
        compile: True, False, or None to compile where it can be expected to work. The first call is slow then.

    Example:
        >>> from bgd import BGD
        >>> model = nn.Linear(3, 2)
        >>> optimizer = BGD.paper(model.parameters(), std_init=0.02)
        >>> def objective(net, x, y):
        ...     return nn.functional.cross_entropy(net(x), y, reduction="sum")
        >>> step = BatchedStep(optimizer, model, objective, compile=False)
        >>> loss = step(torch.randn(8, 3), torch.randint(2, (8,)))
    """

    def __init__(
        self,
        optimizer: Steppable,
        model: nn.Module,
        objective: Objective,
        *,
        chunk_size: int | None = None,
        compile: bool | None = None,
    ) -> None:
        if chunk_size is not None:
            check_whole(1, chunk_size=chunk_size)
        self.optimizer = optimizer
        self.model = model
        self.objective = objective
        self.chunk_size = chunk_size
        self.compile = can_compile() if compile is None else compile
        self.path = "compiled" if self.compile else "eager"
        """The path in use, one of :data:`PATHS`."""
        if chunk_size is None and compile is not True and _better_one_by_one(model, self.compile):
            self.path = "loop"
        self._names: tuple[str, ...] = ()
        self._params: list[Tensor] = []
        self._evaluate: Callable[..., Tensor] | None = None
        self._compiled: Callable[..., Tensor] | None = None
        self._objective_checked = False

    def __call__(self, *batch: Any, batch_size: int | None = None) -> Tensor:
        """Take one step on a batch; returns the mean loss of the sampled networks."""
        loss = self.optimizer.step_with(lambda step: self.estimate(step, batch), batch_size=batch_size)
        assert loss is not None
        return loss

    def estimate(self, step: Step, batch: tuple[Any, ...]) -> Expectations:
        """The expectations of a step, by the fastest path that can run the model."""
        first, reason = self.path, ""
        generators = _Generators(step.params)
        for path in PATHS[PATHS.index(first) :]:
            if path != self.path:
                self.path, self._evaluate = path, None
            try:
                expectations = self._estimate_by_path(step, batch)
            except (FloatingPointError, _NoPathHelps):
                raise
            except Exception as error:
                if path == PATHS[-1]:  # the batch or the objective is at fault, not the path
                    self.path, self._evaluate = first, None
                    raise
                reason = first_line(error)
                step.sums.clear()
                generators.restore()  # a run that resumes on another path draws the same dropout
            else:
                if path != first:
                    step.afterwards.append(lambda: _warn_of_fallback(first, path, reason))  # noqa: B023
                step.afterwards.append(lambda: self.optimizer.batch_shapes.record(shape_of(batch)))
                return expectations
        raise AssertionError("unreachable: the last path returns or raises")

    def _estimate_by_path(self, step: Step, batch: tuple[Any, ...]) -> Expectations:
        if self.path == "loop":
            return loop(lambda: self._backward(batch))(step)
        self._bind(step.params)
        evaluate = self._evaluate
        if self.path == "compiled" and self.optimizer.batch_shapes.worth_compiling(shape_of(batch)):
            evaluate = self._compiled
        assert evaluate is not None
        sums = step.sums
        chunk = self.chunk_size or chunk_that_fits(len(step.samples), step.means)
        with _buffers_unchanged(self.model):
            for start in range(0, len(step.samples), chunk):
                part = step.samples[start : start + chunk]
                eps = tuple(step.noise(part))
                losses = evaluate(tuple(step.means), tuple(step.stds), eps, sums.e_g, sums.e_g_eps, *batch)
                sums.losses.extend(losses.detach().unbind())
                sums.count += len(part)
        if not self._objective_checked:
            self._objective_checked = any(bool(g.any()) for g in sums.e_g) or self._objective_calls_net(batch)
        expectations = step.expectations()
        expectations.compiled = self.path == "compiled"
        return expectations

    def _backward(self, batch: tuple[Any, ...]) -> Tensor:
        loss = self.objective(self.model, *batch)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    @torch.no_grad()
    def _objective_calls_net(self, batch: tuple[Any, ...]) -> bool:
        """Whether the objective uses the network it is given: a gradient of exactly 0 may have better reasons."""
        called = []

        def net(*args: Any, **kwargs: Any) -> Any:
            called.append(True)
            buffers = {name: buffer.clone() for name, buffer in self.model.named_buffers()}
            return functional_call(self.model, buffers, args, kwargs)

        generators = _Generators(self._params)
        self.objective(net, *batch)
        generators.restore()
        if not called:
            raise _NoPathHelps(
                "the objective never calls net, its first argument: call it in place of the model, whose own weights "
                "stay at the mean here"
            )
        return True

    def _bind(self, params: list[Tensor]) -> None:
        """Find the parameters' names in the model, and build the function of them that is mapped over the samples."""
        if self._evaluate is not None and list(map(id, params)) == list(map(id, self._params)):
            return
        names: dict[Tensor, str] = {p: name for name, p in self.model.named_parameters()}
        missing = [self.optimizer.name_of(p) for p in params if p not in names]
        if missing:
            raise _NoPathHelps(f"the optimizer has {', '.join(missing[:3])}, which the model does not")
        self._params, self._names = params, tuple(names[p] for p in params)
        self._evaluate = _make_evaluate(self.model, self.objective, self._names, tuple(p.dtype for p in params))
        self._compiled = torch.compile(self._evaluate) if self.path == "compiled" else None


def _warn_of_fallback(first: str, path: str, reason: str) -> None:
    warnings.warn(
        f"BGD's {first} batched path cannot run this model: {reason}. It continues with the {path} path: "
        "same results, slower.",
        RuntimeWarning,
        stacklevel=caller_stacklevel(),
    )


def _better_one_by_one(model: nn.Module, compiled: bool) -> bool:
    """Whether vmap would be slower: a convolution in groups, or eager code on weights that leave a CPU's cache."""
    on_cpu = all(p.device.type == "cpu" for p in model.parameters())
    convolves = any(isinstance(m, _ConvNd) for m in model.modules())
    return on_cpu and (convolves or (not compiled and sum(p.numel() for p in model.parameters()) > EAGER_WEIGHTS))


class _Generators:
    """torch's own generators as they are now, on a CPU and on the GPUs of the parameters."""

    def __init__(self, params: list[Tensor]) -> None:
        self.cpu = torch.get_rng_state()
        self.gpus = {d: torch.cuda.get_rng_state(d) for d in {p.device for p in params} if d.type == "cuda"}

    def restore(self) -> None:
        torch.set_rng_state(self.cpu)
        for device, state in self.gpus.items():
            torch.cuda.set_rng_state(state, device)


@contextmanager
def _buffers_unchanged(model: nn.Module) -> Iterator[None]:
    """Refuse a model that assigns a buffer in forward: under vmap that is K tensors in one, and dead afterwards."""
    held = [(module, dict(module._buffers)) for module in model.modules() if module._buffers]
    assigned: list[str] = []
    try:
        yield
    finally:
        for module, before in held:
            assigned += [name for name, buffer in before.items() if module._buffers.get(name) is not buffer]
            module._buffers.update(before)
    if assigned:
        raise RuntimeError(f"it assigns its buffer {assigned[0]!r} in forward")


class _NoPathHelps(ValueError):
    """The objective or the optimizer does not go with the model."""


def _make_evaluate(
    model: nn.Module, objective: Objective, names: tuple[str, ...], dtypes: tuple[torch.dtype, ...]
) -> Callable[..., Tensor]:
    """(means, stds, eps, e_g, e_g_eps, *batch) -> the losses; what the samples add to the sums is added in place.

    Compiled, that addition is part of the pass over the gradients, which are read once.
    """

    def loss_of(weights: Tensors, *batch: Any) -> Tensor:
        def net(*args: Any, **kwargs: Any) -> Any:
            return functional_call(model, dict(zip(names, weights, strict=True)), args, kwargs)

        return objective(net, *batch)

    def evaluate(
        means: Tensors, stds: Tensors, eps: Tensors, e_g: list[Tensor], e_g_eps: list[Tensor], *batch: Any
    ) -> Tensor:
        weights = tuple(
            torch.addcmul(mean, std, e).to(dtype) for mean, std, e, dtype in zip(means, stds, eps, dtypes, strict=True)
        )
        in_dims = (0, *[None] * len(batch))
        losses: Tensor
        g, losses = vmap(grad_and_value(loss_of), in_dims, randomness="different")(weights, *batch)
        for a, e, sum_g, sum_g_eps in zip(g, eps, e_g, e_g_eps, strict=True):
            a = a.detach().to(e.dtype)
            sum_g.add_(a.sum(0))
            sum_g_eps.add_((a * e).sum(0))
        return losses

    # torch.compile keeps its graphs, of which it allows few, with the code object: each model gets one of its own.
    evaluate.__code__ = evaluate.__code__.replace()
    return evaluate
