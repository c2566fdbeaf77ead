"""The one-pass estimator: while the network trains, its weights are perturbed, with noise of its own for each example.

A plain training loop is all it needs: ``loss.backward()`` and ``optimizer.step()``. The equations are in
:mod:`bgd.optim.estimators.perturbation`. Each backward pass adds its examples to the batch of the step; with a closure,
``mc_samples`` passes over the same batch are averaged.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from bgd.optim.estimators.base import Alone, Estimator, Expectations, Step
from bgd.optim.estimators.passes import Closure, Host, Reduction
from bgd.optim.estimators.perturbation import Perturbation, batch_size_of
from bgd.optim.validation import check_batch_size


class PerExample:
    """Perturbs modules while they train, and collects the expectations of their backward passes.

    Args:
        host: the optimizer.
        shared: numbers of parameters that are known to be used in several ways, and so get one sample for the batch.
    """

    def __init__(self, host: Host, shared: frozenset[int] = frozenset()) -> None:
        self._host = host
        self._hooks: list[Any] = []
        self._buffers: list[Tensor] = []
        self.held = False
        self.shared = shared
        self.clear()
        self.attach(host.models())

    def clear(self) -> None:
        """Forget the passes of a step that was not taken, or has been taken."""
        if self.held:
            return
        self.step: Step | None = None
        self.examples = 0
        self._passes = 0
        self._batch = 0
        self._noise: list[Tensor] = []
        self._e_g_eps: list[Tensor] = []
        self._mode: Perturbation | None = None
        self._depth = 0
        self._backward_seen = False

    @contextmanager
    def holding(self, step: Step, first_pass: int) -> Iterator[None]:
        """Inside, passes belong to this step, whatever clears gradients."""
        self.clear()
        for p in step.params:
            p.grad = None
        self.step, self._passes, self.held = step, first_pass, True
        try:
            yield
        finally:
            self.held = False

    # --- hooks

    def attach(self, models: Iterable[nn.Module]) -> None:
        """Perturb these models, and every module in them, whenever they run in training mode."""
        _keep_hooks_out_of_compiled_graphs()
        self.detach()
        # A module without parameters, such as a ReLU, runs inside others or has nothing to perturb.
        for module in {m: None for model in models for m in model.modules() if any(True for _ in m.parameters())}:
            self._hooks.append(module.register_forward_pre_hook(_Hook(self, "enter"), with_kwargs=True))
            self._hooks.append(module.register_forward_hook(_Hook(self, "leave"), with_kwargs=True, always_call=True))

    def detach(self) -> None:
        """Remove all hooks."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def enter(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A module begins to run."""
        if self._depth or (self._host.enabled() and module.training and torch.is_grad_enabled()):
            self._depth += 1
            if self._depth == 1:
                self._begin_pass(batch_size_of(args, kwargs))

    def leave(self) -> None:
        """A module has run, or failed."""
        if self._depth:
            self._depth -= 1
            if not self._depth and self._mode is not None:
                self._mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
                if self._mode.conflicts - self.shared:  # from the next pass on: one sample for the whole batch
                    self.shared |= self._mode.conflicts

    def _begin_pass(self, batch: int) -> None:
        recomputing = torch._C._current_graph_task_id() != -1  # activation checkpointing runs modules in backward
        if self.step is not None and all(p.grad is None for p in self.step.params) and self._backward_seen:
            self.clear()  # the gradients of the passes so far have been thrown away
            self._depth = 1
        if self._backward_seen and not recomputing:
            self._end_pass()
        if self.step is None:
            self.step = self._host.begin_step()
        if not self._noise:
            self._sample_noise(self.step)
        self._batch = max(self._batch, 0 if recomputing else batch)
        self._mode = Perturbation(
            self.step.params, self._noise, batch or self._batch, self._host.noise_key(self._passes), self.shared
        )
        self._mode.__enter__()  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def _sample_noise(self, step: Step) -> None:
        if [(z.shape, z.dtype, z.device) for z in self._buffers] != [(s.shape, s.dtype, s.device) for s in step.stds]:
            self._buffers = [torch.empty_like(std).requires_grad_() for std in step.stds]
            for z in self._buffers:
                z.register_hook(self._note_backward)  # type: ignore[no-untyped-call]
        self._noise = self._buffers
        for z, e, std in zip(self._noise, step.noise([self._passes]), step.stds, strict=True):
            torch.mul(e[0], std, out=z)
            z.grad = None

    def _note_backward(self, gradient: Tensor) -> None:
        del gradient
        self._backward_seen = True

    @torch.no_grad()
    def _end_pass(self) -> None:
        """Add what the pass gave to std E[g eps] = Z dL/dZ; E[g] adds up in the gradients of the parameters."""
        if self.step is None or not self._noise:
            return
        terms = [torch.zeros_like(z) if z.grad is None else z.grad.mul_(z) for z in self._noise]
        for z in self._noise:
            z.grad = None
        if self._e_g_eps:
            torch._foreach_add_(self._e_g_eps, terms)
        else:
            self._e_g_eps = terms
        self.examples += self._batch
        self._passes += 1
        self._batch, self._noise, self._backward_seen = 0, [], False

    # --- expectations

    def check_batch_size(self, reduction: Reduction, batch_size: int | None) -> None:
        """The examples are counted as the model sees them; a batch size overrides that count."""
        if batch_size is not None:
            check_batch_size(reduction, batch_size)

    def estimator(self, closure: Closure | None, samples: int, mean: bool) -> Estimator:
        """From the backward passes so far, or the mean over ``samples`` calls of a closure."""
        if closure is None:
            return lambda step: self._shared_out(step, [self.expectations(mean)])
        return lambda step: self._shared_out(step, self._repeated(step, closure, samples, mean))

    def _repeated(self, step: Step, closure: Closure, samples: int, mean: bool) -> Iterator[Expectations]:
        for number in range(samples):
            step.statistics.begin_sample()
            with self.holding(step, number), torch.enable_grad():
                loss = closure()
            step.statistics.end_sample()
            found = self.expectations(mean)
            found.loss = None if loss is None else torch.as_tensor(loss).detach().float()
            yield found

    def _shared_out(self, step: Step, passes: Iterable[Expectations]) -> Expectations:
        """The mean over passes and processes; one pass of one process is used as it is, without a copy."""
        if isinstance(step.sharing, Alone) and isinstance(passes, list):
            only: Expectations = passes[0]
            return only
        sums, found = step.sums, None
        sums.has_gradient = [False] * len(step.params)
        for found in passes:
            torch._foreach_add_(sums.e_g, found.e_g, alpha=found.scale)
            torch._foreach_add_(sums.e_g_eps, found.e_g_eps, alpha=found.scale)
            sums.has_gradient = [a or b for a, b in zip(sums.has_gradient, found.has_gradient, strict=True)]
            if found.loss is not None:
                sums.losses.append(found.loss)
            sums.count += 1
        assert found is not None
        step.batch_factor = 1.0
        expectations = step.expectations()
        expectations.in_stds, expectations.examples = True, found.examples
        return expectations

    @torch.no_grad()
    def expectations(self, mean: bool) -> Expectations:
        """E[g] and E[g eps] from the backward passes since the last step.

        Args:
            mean: whether the loss is a mean over the examples, which the update needs as a sum.
        """
        if self._backward_seen:
            self._end_pass()
        step = self.step
        if step is None or not self._passes:
            raise RuntimeError(
                "step() without a perturbed backward pass: run the model in training mode (model.train()), call "
                "backward() on its loss, then step()"
            )
        e_g = [
            torch.zeros_like(std) if p.grad is None else p.grad.to(std.dtype)
            for p, std in zip(step.params, step.stds, strict=True)
        ]
        has_gradient = [p.grad is not None for p in step.params]
        factor = step.batch_factor if step.batch_factor != 1.0 else float(self.examples)
        scale = factor if mean else 1.0
        return Expectations(e_g, self._e_g_eps, None, has_gradient, scale, in_stds=True, examples=self.examples)


class _Hook:
    """A module's hook that copies and pickles of the module do not take along."""

    def __init__(self, passes: PerExample | None, name: str) -> None:
        self._passes = weakref.ref(passes) if passes is not None else None
        self._name = name

    def __call__(self, module: nn.Module, args: Any, kwargs: Any, output: Any = None) -> None:
        del output
        if self._passes is not None and (passes := self._passes()) is not None:
            passes.enter(module, args, kwargs) if self._name == "enter" else passes.leave()

    def __deepcopy__(self, memo: Any) -> _Hook:
        return _Hook(None, self._name)

    def __reduce__(self) -> Any:
        return _Hook, (None, self._name)


def _keep_hooks_out_of_compiled_graphs() -> None:
    """Let the hooks run eagerly in a compiled model; only where the compiler is in use, since importing it is slow."""
    if "torch._dynamo" in sys.modules and not hasattr(_Hook.__call__, "_torchdynamo_disable"):
        _Hook.__call__ = torch.compiler.disable(_Hook.__call__)  # type: ignore[method-assign, no-untyped-call]
