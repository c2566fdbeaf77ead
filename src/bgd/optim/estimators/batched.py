"""All sampled networks in one pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.modules.conv import _ConvNd

from bgd.optim.compilation import can_compile, first_line, users_level
from bgd.optim.compile_shapes import shape_of
from bgd.optim.diagnostics import CollapseWarning

if TYPE_CHECKING:
    from bgd.optim.bgd import BGD

Tensors = tuple[Tensor, ...]

PATHS = ("compiled", "eager", "loop")
"""Ways to evaluate the networks, the fastest first: vmap compiled, vmap as it is, one network at a time."""


class Objective(Protocol):
    """The loss of one network on one batch, as a scalar: ``objective(net, *batch)``."""

    def __call__(self, net: Callable[..., Any], *batch: Any) -> Tensor:
        """Call ``net`` where you would call the model."""
        ...


class BatchedStep:
    """One BGD step with all K networks evaluated in one pass: the same numbers as ``step(closure)``, sooner.

    The networks run side by side through ``torch.func.vmap``, in chunks of ``chunk_size`` where memory is short, and
    compiled where a compiler is at hand. A model that cannot run so (batch normalisation that updates its statistics in
    place, control flow that depends on data) is run network by network instead, after one warning that says why.

    A model with convolutions on a CPU is run network by network from the start, unless ``chunk_size`` or
    ``compile=True`` asks for more. There vmap becomes a convolution in groups, which does the same work less well: one
    network's convolution keeps the cores busy, and K networks side by side only leave the cache. ``benchmarks/step.py``
    shows it. What does make convolutions faster on a CPU, those of SGD alike, is
    ``model.to(memory_format=torch.channels_last)`` before the optimizer is made.

    Compiled code serves one shape of batch. Batches of another shape, such as the short last one of an epoch, run
    uncompiled until two of a shape come in a row: see :mod:`bgd.optim.compile_shapes`.

    Args:
        optimizer: the posterior to update.
        model: the model that holds the optimizer's parameters.
        objective: ``objective(net, *batch)`` returns the loss, a sum or a mean as the optimizer's ``reduction`` says.
            Call ``net`` in it where you would call the model.
        chunk_size: how many networks to evaluate, and hold in memory, at a time; None for the choice above: all of
            them, or one by one where the model has convolutions.
        compile: True, False, or None to compile where it can be expected to work. The first call is slow then.

    Example:
        >>> from bgd import BGD
        >>> model = nn.Linear(3, 2)
        >>> optimizer = BGD(model.parameters())
        >>> def objective(net, x, y):
        ...     return nn.functional.cross_entropy(net(x), y, reduction="sum")
        >>> step = BatchedStep(optimizer, model, objective, compile=False)
        >>> loss = step(torch.randn(8, 3), torch.randint(2, (8,)))
    """

    def __init__(
        self,
        optimizer: BGD,
        model: nn.Module,
        objective: Objective,
        *,
        chunk_size: int | None = None,
        compile: bool | None = None,
    ) -> None:
        if chunk_size is not None and chunk_size < 1:
            raise ValueError(f"chunk_size must be at least 1, got {chunk_size}")
        self.optimizer = optimizer
        self.model = model
        self.objective = objective
        self.chunk_size = chunk_size
        self.compile = can_compile() if compile is None else compile
        self.path = "compiled" if self.compile else "eager"
        """The way that is used, one of :data:`PATHS`."""
        if chunk_size is None and compile is not True and _convolves_on_cpu(model):
            self.path = "loop"
        self._names: tuple[str, ...] = ()
        self._params: list[Tensor] = []
        self._evaluate: Callable[..., Tensor] | None = None
        self._compiled: Callable[..., Tensor] | None = None
        self._learns = False

    def __call__(self, *batch: Any, batch_size: int | None = None) -> Tensor:
        """Take one step on a batch; returns the mean loss of the sampled networks."""
        self.optimizer._check_batch_size(batch_size)
        self.optimizer._check_at_rest("a batched step")
        return self.optimizer._hooked(lambda: self._take(batch, batch_size))

    def _take(self, batch: tuple[Any, ...], batch_size: int | None) -> Tensor:
        """The step, by the fastest path that can run the model."""
        optimizer = self.optimizer
        first, reason = self.path, ""
        generators = _Generators(optimizer._params())
        for path in PATHS[PATHS.index(first) :]:
            if path != self.path:
                self.path, self._evaluate = path, None
            try:
                loss = optimizer._run_step(lambda: self._sample_all(batch), batch_size, compiled=path == "compiled")
            except (FloatingPointError, _NoPathHelps, CollapseWarning):
                raise
            except Exception as error:
                if path == PATHS[-1]:  # not the path is at fault, but the batch or the objective
                    self.path, self._evaluate = first, None
                    raise
                reason = first_line(error)
                generators.restore()  # a run that resumes on another path draws the same dropout
            else:
                if path != first:
                    warnings.warn(
                        f"BGD's {first} batched path cannot run this model: {reason}. It goes on with the {path} path: "
                        "same results, slower.",
                        RuntimeWarning,
                        stacklevel=users_level(),
                    )
                optimizer._shapes.note(shape_of(batch))
                assert loss is not None
                return loss
        raise AssertionError("unreachable: the last path returns or raises")

    def _sample_all(self, batch: tuple[Any, ...]) -> None:
        optimizer = self.optimizer
        if self.path == "loop":
            for _ in optimizer._own_samples():
                optimizer.draw()
                with torch.enable_grad():
                    loss = self.objective(self.model, *batch)
                    loss.backward()  # type: ignore[no-untyped-call]
                optimizer.accumulate(loss)
            return
        pending = optimizer._begin()
        self._bind(pending.params)
        evaluate = self._evaluate
        if self.path == "compiled" and optimizer._shapes.worth_compiling(shape_of(batch)):
            evaluate = self._compiled
        assert evaluate is not None
        means = tuple(optimizer.state[p]["mean"] for p in pending.params)
        stds = tuple(optimizer.state[p]["std"] for p in pending.params)
        samples = optimizer._own_samples()
        chunk = self.chunk_size or len(samples)
        with _buffers_kept(self.model):
            for start in range(0, len(samples), chunk):
                part = samples[start : start + chunk]
                eps = tuple(optimizer._training_noise(pending.params, part))
                losses = evaluate(means, stds, eps, pending.e_g, pending.e_g_eps, *batch)
                pending.losses.extend(losses.detach().unbind())
                pending.count += len(part)
        if not self._learns:
            self._learns = any(bool(g.any()) for g in pending.e_g) or self._calls_net(batch)

    @torch.no_grad()
    def _calls_net(self, batch: tuple[Any, ...]) -> bool:
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
        missing = [self.optimizer._name(p) for p in params if p not in names]
        if missing:
            raise _NoPathHelps(f"the optimizer has {', '.join(missing[:3])}, which the model does not")
        self._params, self._names = params, tuple(names[p] for p in params)
        self._evaluate = _make_evaluate(self.model, self.objective, self._names, tuple(p.dtype for p in params))
        self._compiled = torch.compile(self._evaluate) if self.path == "compiled" else None


def _convolves_on_cpu(model: nn.Module) -> bool:
    return any(isinstance(m, _ConvNd) and m.weight.device.type == "cpu" for m in model.modules())


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
def _buffers_kept(model: nn.Module) -> Iterator[None]:
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
