"""The one-pass estimator: while the network trains, its weights are perturbed, with noise of its own for each example.

A plain training loop is all it needs: ``loss.backward()`` and ``optimizer.step()``. The equations are in
:mod:`bgd.optim.estimators.perturbation`.

- Each backward pass adds its examples to the batch of the step, as gradients add up in ``p.grad``; with a closure,
  ``mc_samples`` passes over the same batch are averaged.
- E[g] is in ``p.grad``, where a loop may unscale or clip it; E[g eps] follows it, see
  :mod:`bgd.optim.estimators.gradient_changes`.
- Forward passes before one backward pass meet the same networks; those without a backward pass do not count.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from bgd.optim.estimators.base import Alone, Estimator, Expectations, Step
from bgd.optim.estimators.gradient_changes import GradientRecord
from bgd.optim.estimators.hooks import hook, in_backward, is_transforming, keep_out_of_compiled_graphs
from bgd.optim.estimators.inputs import batch_size_of, check_time_first, is_time_first
from bgd.optim.estimators.passes import Closure, Host, Reduction
from bgd.optim.estimators.perturbation import Perturbation
from bgd.optim.noise import NoiseKind
from bgd.optim.validation import check_batch_size


class PerExample:
    """Perturbs modules while they train, and collects the expectations of their backward passes.

    Args:
        host: the optimizer.
        shared: numbers of parameters that are known to be used in several ways, and so get one sample for the batch.
    """

    samples_networks: ClassVar[bool] = False
    default_noise: ClassVar[NoiseKind] = "table"

    def __init__(self, host: Host, shared: frozenset[int] = frozenset()) -> None:
        self._host = host
        self._hooks: list[Any] = []
        self._buffers: list[Tensor] = []
        self._mode: Perturbation | None = None
        self._inside: list[bool] = []  # for each module that runs, outermost first: whether its inputs are time first
        self._leftover: list[weakref.ref[Tensor]] = []  # the gradients of the last step
        self.shared = shared
        self._forget()
        self.attach(host.models())

    def _forget(self) -> None:
        self.step: Step | None = None
        self.examples = 0
        self._passes = 0  # the number of the next pass's noise
        self._e_g_eps: list[Tensor] = []
        self._perturbed: list[bool] = []  # whether backward has reached each parameter's noise
        self._begin()

    def _begin(self) -> None:
        """The next forward pass draws noise of its own."""
        self._noise: list[Tensor] = []
        self._counted = 0  # the examples that backward has gone through
        self._seen: dict[int, int] = {}  # the modules that ran, and the examples they ran with
        self._record: GradientRecord | None = None
        self._task = -1
        self._backward_seen = False

    def clear(self) -> None:
        """Forget the passes of a step that has been taken."""
        params = self.step.params if self.step is not None else []
        self._leftover = [weakref.ref(p.grad) for p in params if p.grad is not None]
        self._leave_mode()
        self._forget()

    def clear_gradients(self) -> None:
        """Forget backward passes whose gradients are thrown away; a forward pass may still wait for its backward."""
        self._leftover = []
        self._e_g_eps, self._perturbed, self.examples, self._counted = [], [], 0, 0
        self._record, self._backward_seen = None, False
        for z in self._noise:
            z.grad = None

    def _accumulated(self) -> bool:
        return self._backward_seen or bool(self._e_g_eps)

    # --- forward

    def attach(self, models: Iterable[nn.Module]) -> None:
        """Perturb these models, and every module in them, whenever they run in training mode."""
        self.detach()
        modules = dict.fromkeys(m for model in models for m in model.modules())
        self._time_first = any(is_time_first(m) for m in modules)
        # A module without parameters, such as a ReLU, runs inside others or has nothing to perturb. TorchScript modules
        # take no hooks, and hide their weights.
        for module in modules:
            if any(True for _ in module.parameters()) and not isinstance(module, torch.jit.ScriptModule):
                self._hooks += hook(module, self)

    def detach(self) -> None:
        """Remove all hooks."""
        for one in self._hooks:
            one.remove()
        self._hooks = []

    def enter(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A module begins to run."""
        if self._mode is not None and not self._time_first:  # where no module has time first, there is little to do
            self._inside.append(False)
            self._seen[id(module)] = self._mode.batch
            return
        if self._mode is not None:
            check_time_first(module, args, self._mode.batch)
            self._inside.append(self._inside[-1] or is_time_first(module))
        elif self._host.enabled() and module.training and torch.is_grad_enabled() and not is_transforming():
            self._begin_pass(module, batch_size_of(module, args, kwargs))
            self._inside.append(is_time_first(module))
        if self._mode is not None:
            self._mode.time_first = self._inside[-1]
            self._seen[id(module)] = self._mode.batch

    def leave(self, output: Any) -> None:
        """A module has run, or failed."""
        if self._mode is None:
            return
        self._inside.pop()
        if self._inside:
            self._mode.time_first = self._inside[-1]
            return
        batch, conflicts = self._mode.batch, self._mode.conflicts
        self._leave_mode()
        if conflicts - self.shared:  # from the next pass on: one sample for the whole batch
            self.shared |= conflicts
        if not in_backward():
            self._count_once_used(output, batch)

    def _leave_mode(self) -> None:
        if self._mode is not None:
            self._mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self._mode, self._inside = None, []

    def _begin_pass(self, module: nn.Module, batch: int) -> None:
        if in_backward():  # activation checkpointing runs modules again, to get the same outputs
            if id(module) not in self._seen:
                raise RuntimeError(
                    f"{type(module).__name__} is recomputed in backward, but was not perturbed in forward: use "
                    "torch.utils.checkpoint.checkpoint(..., use_reentrant=False)"
                )
            batch = self._seen[id(module)]
        else:
            self._end_pass()
        if self.step is None:
            self.step = self._host.begin_step()
            self._leftover = [left for left in self._leftover if self._is_leftover(left)]
        if not self._noise:
            self._sample_noise(self.step)
        key, place = self._host.noise_key(self._passes), self.step.sharing.place()
        self._mode = Perturbation(
            self.step.params, self._noise, batch, key, self.shared, place=place, cautious=self._time_first
        )
        keep_out_of_compiled_graphs(Perturbation, "call_eagerly")
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

    def _count_once_used(self, output: Any, batch: int) -> None:
        """The examples of a forward pass belong to the step once backward goes through it."""
        tensors = [t for t in tree_leaves(output) if isinstance(t, Tensor) and t.grad_fn is not None]
        for tensor in tensors:
            tensor.register_hook(partial(self._note_output, self._noise, batch))  # type: ignore[no-untyped-call]
        if not tensors:
            self._counted = max(self._counted, batch)

    # --- backward

    def _note_output(self, noise: list[Tensor], batch: int, gradient: Tensor) -> None:
        """Backward has reached the output of a module that was perturbed by this noise."""
        del gradient
        if noise is self._noise:
            self._counted = max(self._counted, batch)
            self._follow_gradients()

    def _note_backward(self, gradient: Tensor) -> None:
        """Backward has reached a weight's noise: when it ends, remember how it leaves the gradients."""
        del gradient
        self._backward_seen, self._record = True, None
        if (task := torch._C._current_graph_task_id()) != self._task:
            self._task = task
            queue = torch.autograd.Variable._execution_engine.queue_callback
            # twice: after the callbacks that others have queued, which may average gradients over processes
            queue(lambda: queue(self._remember_gradients))

    def _remember_gradients(self) -> None:
        if self.step is not None:
            self._record = GradientRecord(self.step.params)

    @torch.no_grad()
    def _follow_gradients(self) -> None:
        """Change E[g eps] by what the loop has done to the gradients since the last backward pass."""
        factors = self._record.factors() if self._record is not None else None
        if factors is None or self.step is None:
            return
        self._record = GradientRecord(self.step.params)
        for sums in (self._e_g_eps, [z.grad for z in self._noise]):
            for total, factor in zip(sums, factors, strict=False):
                if total is not None and factor != 1:
                    total.mul_(factor)

    def _is_leftover(self, gradient: weakref.ref[Tensor]) -> bool:
        known = gradient()
        ours = known is not None and self.step is not None and any(p.grad is known for p in self.step.params)
        return ours and bool(known is not None and known.any())  # zeros have nothing left over

    @torch.no_grad()
    def _end_pass(self) -> None:
        """Add what the pass gave to std E[g eps] = Z dL/dZ; E[g] adds up in the gradients of the parameters."""
        if self.step is None or not self._accumulated():
            return
        if all(p.grad is None for p in self.step.params):
            self.clear_gradients()
            return
        self._follow_gradients()
        if not self._backward_seen:
            return
        known = [z.grad is not None for z in self._noise]
        terms = [torch.zeros_like(z) if z.grad is None else z.grad.mul_(z) for z in self._noise]
        for z in self._noise:
            z.grad = None
        if self._e_g_eps:
            torch._foreach_add_(self._e_g_eps, terms)
            self._perturbed = [a or b for a, b in zip(self._perturbed, known, strict=True)]
        else:
            self._e_g_eps, self._perturbed = terms, known
        self.examples += self._counted
        self._passes += 1
        record = self._record
        self._begin()
        self._record = record

    # --- expectations

    def check_batch_size(self, reduction: Reduction, batch_size: int | None) -> None:
        """The examples are counted as the model sees them; a batch size overrides that count."""
        if batch_size is not None:
            check_batch_size(reduction, batch_size)

    def estimator(self, closure: Closure | None, samples: int, mean: bool) -> Estimator:
        """From the backward passes so far, and that of a closure; or the mean over ``samples`` calls of a closure."""
        kept = [self._accumulated()]  # for the first estimate; implicit equations ask for several
        if closure is not None and samples > 1 and kept[0]:
            raise RuntimeError(
                f"gradients have been accumulated before step(closure), which mc_samples={samples} calls would all "
                "share: accumulate with mc_samples=1, or inside the closure"
            )

        def estimate(step: Step) -> Expectations:
            fresh = not kept.pop() if kept else True
            if closure is None:
                if fresh and self._e_g_eps:
                    raise RuntimeError("implicit_iterations estimates again for each posterior: use step(closure)")
                return self._shared_out(step, [self.expectations(step, mean)])
            calls = (self._called(step, closure, number if fresh else None, mean) for number in range(samples))
            return self._shared_out(step, list(calls) if samples == 1 else calls)

        return estimate

    def _called(self, step: Step, closure: Closure, number: int | None, mean: bool) -> Expectations:
        """The expectations of one call of a closure, alone; without a number, with the passes before it."""
        if number is not None:
            self._leave_mode()
            self._forget()
            for p in step.params:
                p.grad = None
            self._passes = number
        self.step = step
        step.statistics.begin_sample()
        with torch.enable_grad():
            loss = closure()
        step.statistics.end_sample()
        found = self.expectations(step, mean)
        found.loss = None if loss is None else torch.as_tensor(loss).detach().float()
        return found

    def _shared_out(self, step: Step, passes: Iterable[Expectations]) -> Expectations:
        """The mean over passes and processes; one pass of one process is used as it is, without a copy."""
        if isinstance(step.sharing, Alone) and isinstance(passes, list):
            only: Expectations = passes[0]
            return only
        sums = step.sums
        sums.has_gradient = [False] * len(step.params)
        for found in passes:
            torch._foreach_add_(sums.e_g, found.e_g, alpha=found.scale)
            torch._foreach_add_(sums.e_g_eps, found.e_g_eps, alpha=found.scale)
            sums.has_gradient = [a or b for a, b in zip(sums.has_gradient, found.has_gradient, strict=True)]
            if found.loss is not None:
                sums.losses.append(found.loss)
            sums.count += 1
            sums.examples = found.examples
        step.batch_factor = 1.0
        expectations = step.expectations()
        expectations.in_stds, expectations.examples = True, sums.examples
        return expectations

    @torch.no_grad()
    def expectations(self, step: Step, mean: bool) -> Expectations:
        """E[g] and E[g eps] from the backward passes since the last step.

        Args:
            step: under way.
            mean: whether the loss is a mean over the examples, which the update needs as a sum.
        """
        self._end_pass()
        if not self._e_g_eps:
            raise RuntimeError(
                "step() without a perturbed backward pass: run the model in training mode (model.train()) and outside "
                "of TorchScript, call backward() on its loss, then step()"
            )
        self._check_gradients(step)
        e_g = [
            torch.zeros_like(std) if p.grad is None else p.grad.to(std.dtype)
            for p, std in zip(step.params, step.stds, strict=True)
        ]
        has_gradient = [p.grad is not None for p in step.params]
        examples = self.examples
        if step.batch_factor != 1.0:
            examples = examples or round(step.batch_factor)
        elif mean and not examples:
            raise RuntimeError(
                "cannot count the examples of a mean loss, as the inputs of the model hold no tensor: say how many by "
                "step(batch_size=...)"
            )
        scale = (step.batch_factor if step.batch_factor != 1.0 else float(examples)) if mean else 1.0
        return Expectations(e_g, self._e_g_eps, None, has_gradient, scale, in_stds=True, examples=examples)

    def _check_gradients(self, step: Step) -> None:
        """Refuse gradients whose part in E[g eps] is not known."""
        if any(self._is_leftover(left) for left in self._leftover):
            raise RuntimeError(
                "gradients of the last step are still there and have been added to: call optimizer.zero_grad() before "
                "backward()"
            )
        for p, perturbed in zip(step.params, self._perturbed, strict=True):
            if p.grad is not None and p.grad.is_sparse:
                raise RuntimeError("sparse gradients are not supported: use sparse=False in the embedding")
            if p.grad is not None and not perturbed and bool(p.grad.any()):
                raise RuntimeError(
                    f"{self._host.name_of(p)} has a gradient, but no module has perturbed it: use it in a module's "
                    'forward, in training mode and outside of torch.func and TorchScript, or use estimator="shared"'
                )
