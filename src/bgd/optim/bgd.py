"""Bayesian Gradient Descent as a PyTorch optimizer.

One step is three parts, each in a file of its own: an estimator (:mod:`bgd.optim.estimators`) turns a batch into
E[g] and E[g eps]; :mod:`bgd.optim.update` turns these into the next posterior; this file is the optimizer around them,
with torch's habits: groups, state dict, hooks, schedulers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal, TypedDict, overload

import torch
from torch import Tensor, nn

from bgd.optim.base import Params, PosteriorOptimizer
from bgd.optim.batchnorm import RunningStatistics
from bgd.optim.compilation import BatchShapes
from bgd.optim.diagnostics import REMEDY, CollapseWatch, Health, examine
from bgd.optim.estimators.base import Alone, Estimator, Expectations, Sharing, Step
from bgd.optim.estimators.batched import BatchedStep, Objective
from bgd.optim.estimators.gradient_sums import GradientSumBuffers, GradientSums
from bgd.optim.estimators.loop import loop
from bgd.optim.estimators.per_example import PerExample, keep_hooks_out_of_compiled_graphs, repeated
from bgd.optim.modules import averages_gradients, find_models
from bgd.optim.noise import NoiseKind
from bgd.optim.posterior import read_means, std_init_of, std_max_of, write_weights
from bgd.optim.update import Expected, Gaussian, Limits, compiled_update, solve_implicit, update_in_place
from bgd.optim.validation import StdInit, check_batch_size
from bgd.validation import check_choice, check_whole

_SIGNS = 2  # apart from the noise of training and of samples


class Paper(TypedDict):
    """Arguments of :class:`BGD`."""

    mc_samples: int
    std_max: None


PAPER: Paper = {"mc_samples": 10, "std_max": None}
"""The paper's own algorithm, where the defaults differ from it: ``BGD(model.parameters(), std_init, **PAPER)``."""


class BGD(PosteriorOptimizer):
    r"""Bayesian Gradient Descent: a Gaussian (mean, std) per weight, updated in closed form from K sampled networks.

    One step draws K networks theta = mean + std * eps, takes the gradient g of the *summed* loss in each, and updates
    (Algorithm 1 of the paper)

    .. math::
        \mu \leftarrow \mu - \eta \sigma^2 E[g], \qquad
        \sigma \leftarrow \sigma \exp(-\operatorname{asinh}(\sigma E[g \varepsilon] / 2)).

    Between steps the weights of the model are the mean.

    Args:
        params: parameters, named parameters or parameter groups, as for any torch optimizer. Groups may have their
            own ``lr``, ``std_init``, ``std_min`` and ``std_max``.
        std_init: std before any data: a number, a tensor, one tensor per parameter, or a function from a parameter to
            a number or tensor. The setting that needs care: the paper uses 0.01 to 0.06.
        mc_samples: K, the number of sampled networks per step. Two were as good as the paper's ten (:data:`PAPER`) on
            its fading tasks, where the std is capped.
        lr: the paper's eta, which scales the step of the mean.
        estimator: ``"shared"`` samples whole networks, each for the whole batch: :meth:`step` needs a closure.
            ``"per_example"`` perturbs the weights while the model trains, each example with noise of its own, so that
            ``loss.backward()`` and ``step()`` are enough; ``mc_samples`` counts the passes of a closure.
        std_min: floor of the std. Without it only the limits of the floating-point format apply.
        std_max: ceiling of the std: a number, ``"init"`` for each weight's initial std, which keeps training stable
            with few samples or a large ``std_init``, or None as in the paper.
        reduction: what the closure's loss is: the ``"sum"`` over the batch, or its ``"mean"``, in which case
            :meth:`step` needs the ``batch_size``. Both give the same update.
        antithetic: draw networks in pairs (+eps, -eps).
        noise: ``"torch"`` or ``"hash"``, see :mod:`bgd.optim.noise`.
        seed: of the noise. Default: torch's global seed, which is read and never changed. Two optimizers of one seed
            share their noise: members of an ensemble, or optimizers of parts of one network, need different seeds.
        generator: a generator to draw the seed from, instead of ``seed``.
        implicit_iterations: at most how often to iterate the implicit equations that the paper derives; 1 is the
            paper's algorithm. All iterations of a step share their noise.
        implicit_tolerance: stop iterating when no mean and no std moves by more than this fraction of the prior's std.
        implicit_damping: the fraction of the way that each of several iterations goes.
        nonfinite: what to do with a gradient that is NaN or infinite: ``"raise"``, or ``"skip"`` the whole step.

    Example:
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = BGD(model.parameters(), std_init=0.02, mc_samples=4)
        >>> x, y = torch.randn(8, 3), torch.randint(2, (8,))
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = torch.nn.functional.cross_entropy(model(x), y, reduction="sum")
        ...     loss.backward()
        ...     return loss
        >>> loss = optimizer.step(closure)
        >>> bool(torch.equal(optimizer.state[model.weight]["mean"], model.weight))
        True
    """

    own_settings = (
        *PosteriorOptimizer.own_settings,
        *("mc_samples", "estimator", "reduction", "nonfinite", "skipped_steps"),
        *("implicit_iterations", "implicit_tolerance", "implicit_damping"),
    )

    def __init__(
        self,
        params: Params,
        std_init: StdInit = 0.02,
        mc_samples: int = 2,
        lr: float | Tensor = 1.0,
        *,
        estimator: Literal["shared", "per_example"] = "shared",
        std_min: float | None = None,
        std_max: float | Literal["init"] | None = "init",
        reduction: Literal["sum", "mean"] = "sum",
        antithetic: bool = False,
        noise: NoiseKind = "torch",
        seed: int | None = None,
        generator: torch.Generator | None = None,
        implicit_iterations: int = 1,
        implicit_tolerance: float = 1e-6,
        implicit_damping: float = 1.0,
        nonfinite: Literal["raise", "skip"] = "raise",
    ) -> None:
        check_whole(1, mc_samples=mc_samples, implicit_iterations=implicit_iterations)
        check_choice("estimator", estimator, ("shared", "per_example"))
        check_choice("reduction", reduction, ("sum", "mean"))
        check_choice("nonfinite", nonfinite, ("raise", "skip"))
        if antithetic and mc_samples % 2:
            raise ValueError(f"antithetic noise comes in pairs: mc_samples must be even, got {mc_samples}")
        if not 0 < implicit_damping <= 1:
            raise ValueError(f"implicit_damping must be in (0, 1], got {implicit_damping}")
        self.mc_samples = mc_samples
        self.estimator = estimator
        self.reduction = reduction
        self.implicit_iterations = implicit_iterations
        self.implicit_tolerance = implicit_tolerance
        self.implicit_damping = implicit_damping
        self.nonfinite = nonfinite
        self.skipped_steps = 0
        self.batch_shapes = BatchShapes()
        self._shared_params: frozenset[int] = frozenset()
        super().__init__(
            params,
            {"lr": lr, "std_init": std_init, "std_min": std_min, "std_max": std_max},
            antithetic=antithetic,
            noise=noise,
            seed=seed,
            generator=generator,
        )
        if estimator == "per_example":
            self._attach_passes()

    def _reset(self) -> None:
        super()._reset()
        self._sharing: Sharing = Alone()
        self._watch = CollapseWatch()
        self._running_statistics: RunningStatistics | None = None
        self._embeddings: set[Tensor] = set()
        self._sum_buffers = GradientSumBuffers()
        if (passes := getattr(self, "_passes", None)) is not None:
            passes.clear()
        self._passes: PerExample | None = passes

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with their own ``lr``, ``std_init``, ``std_min`` or ``std_max`` where given."""
        super().add_param_group(param_group)
        self._running_statistics = None  # new parameters may come with new modules

    # --- a step

    @overload  # type: ignore[override]
    def step(self, closure: None = None, *, batch_size: int | None = None) -> Tensor | None: ...
    @overload
    def step(self, closure: Callable[[], Tensor | float], *, batch_size: int | None = None) -> Tensor: ...
    def step(
        self, closure: Callable[[], Tensor | float] | None = None, *, batch_size: int | None = None
    ) -> Tensor | None:
        """Update the posterior from K sampled networks; returns the mean of their losses.

        Args:
            closure: clears the gradients, computes the loss, calls ``backward()`` and returns the loss: it is called
                ``mc_samples`` times. The per-example estimator needs none: call ``backward()`` before.
            batch_size: number of examples in the loss; needed where ``reduction="mean"``.
        """
        if self.estimator == "per_example":
            return self._step_per_example(closure, batch_size)
        check_batch_size(self.reduction, batch_size)
        self._check_between_steps("step()")
        if closure is None:
            raise RuntimeError(
                'step() without a closure needs BGD(..., estimator="per_example"): sampled networks are shared by the '
                "whole batch here, and step(closure) runs it once for each of them"
            )
        return self._take_step(loop(closure), batch_size)

    def _step_per_example(self, closure: Callable[[], Tensor | float] | None, batch_size: int | None) -> Tensor | None:
        passes, mean = self._attach_passes(), self.reduction == "mean"
        try:
            if closure is not None:
                return self._take_step(repeated(passes, closure, self.mc_samples, mean), batch_size)
            return self._take_step(lambda _: passes.expectations(mean), batch_size, passes.step)
        finally:
            passes.clear()

    def _attach_passes(self) -> PerExample:
        if self._passes is None:
            models = find_models(self._params())
            self._passes = PerExample(
                self._begin_step,
                lambda number: self._noise_key(_SIGNS, self.steps, number),
                lambda: not self._inside_sampled,
            )
            self._passes.shared = self._shared_params
            self._passes.attach(models)
        keep_hooks_out_of_compiled_graphs()
        return self._passes

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients, and with them what backward passes have added to E[g eps] since the last step."""
        super().zero_grad(set_to_none)
        if self.estimator == "per_example":
            self._attach_passes().clear()

    @torch.optim.Optimizer.profile_hook_step
    def step_with(self, estimator: Estimator, *, batch_size: int | None = None) -> Tensor | None:
        """Update the posterior with the expectations of an estimator of one's own; returns its loss.

        >>> p = torch.nn.Parameter(torch.zeros(1))
        >>> optimizer = BGD([p], std_init=0.1)
        >>> def exact(step):  # L = theta: E[g] = 1, E[g eps] = 0
        ...     return Expectations([torch.ones(1)], [torch.zeros(1)], torch.tensor(0.0), has_gradient=[True])
        >>> _ = optimizer.step_with(exact)
        >>> round(p.item(), 6)
        -0.01
        """
        check_batch_size(self.reduction, batch_size)
        self._check_between_steps("step_with()")
        return self._take_step(estimator, batch_size)

    def _take_step(self, estimator: Estimator, batch_size: int | None, step: Step | None = None) -> Tensor | None:
        """Estimate, update, clean up; on an error everything is as it was before the step."""
        self._opt_called = True  # torch's schedulers check it; not every step goes through ``step``
        step = step or self._begin_step()
        step.batch_factor = float(batch_size) if self.reduction == "mean" and batch_size is not None else 1.0
        before = [Gaussian(*map(torch.clone, g)) for g in self._posterior(step)] if self.implicit_iterations > 1 else []
        expectations: Expectations | None = None
        self._in_step = True
        try:
            with suppress(_SkipStep):
                expectations = self._update(step, estimator, before)
            if expectations is None:
                self.skipped_steps += 1
                self._restore(step, before)
                step.statistics.abort()
            else:
                step.statistics.commit()
            self._watch.record_step(expectations is None, self.steps)
        except BaseException:
            self._restore(step, before)
            step.statistics.abort()
            raise
        finally:
            self._in_step = False
            step.write(None)
        self.steps += 1
        loss = expectations.loss if expectations is not None else step.sums.mean_loss()
        if expectations is not None and self._watch.due(self.steps):  # may raise, where warnings are errors
            self._watch.check(self._health(step, expectations), self.steps)
        for callback in step.afterwards:
            callback()
        return loss

    def _begin_step(self) -> Step:
        statistics = self._statistics  # finds the modules, and refuses some, before anything has begun
        params = self._learning()
        if not params:
            raise RuntimeError("no parameter requires a gradient: there is nothing to sample")
        read_means(params, self.state)
        stds = [self.state[p]["std"] for p in params]
        return Step(
            params=params,
            means=[self.state[p]["mean"] for p in params],
            stds=stds,
            samples=self._sharing.samples(self.mc_samples),
            noise=lambda samples: self._training_noise(params, samples),
            write=lambda eps: write_weights(params, self.state, eps),
            sums=GradientSums(params, *self._sum_buffers.zeros(stds)),
            statistics=statistics,
            sharing=self._sharing,
            antithetic=self.antithetic,
        )

    @torch.no_grad()
    def _update(self, step: Step, estimator: Estimator, before: list[Gaussian]) -> Expectations:
        """The posterior after the step, in place; one application of the update, or its fixed point."""
        expectations = self._estimated(step, estimator)
        limits = self._limits(step)
        if self.implicit_iterations == 1:
            if expectations.compiled:
                self._compiled_update(step, expectations, limits)
            else:
                update_in_place(self._posterior(step), expectations.scaled(), limits)
            return expectations
        last = [expectations]

        def expected(current: Sequence[Gaussian]) -> Iterable[Expected]:
            if current[0].mean is not before[0].mean:
                self._restore(step, current)
                step.write(None)
                step.statistics.abort()
                step.sums.clear()
                last[0] = self._estimated(step, estimator)
            return last[0].scaled()

        found = solve_implicit(
            before, expected, limits, self.implicit_iterations, self.implicit_tolerance, self.implicit_damping
        )
        self._restore(step, found.posterior)
        return last[0]

    def _estimated(self, step: Step, estimator: Estimator) -> Expectations:
        """What the estimator returns, once it is known to be finite."""
        expectations = estimator(step)
        if not (wrong := expectations.nonfinite()):
            return expectations
        if self.nonfinite == "skip":
            raise _SkipStep
        names = ", ".join(self.name_of(step.params[i]) for i in wrong[:5])
        message = self._health(step, expectations).message
        advice = (
            f"{message} {REMEDY}"
            if message
            else 'Check the batch and the loss, or pass nonfinite="skip" to BGD to skip such batches.'
        )
        raise FloatingPointError(
            f"NaN or infinite gradient in {names} at step {self.steps}: the posterior is unchanged. {advice}"
        )

    @staticmethod
    def _posterior(step: Step) -> list[Gaussian]:
        return [Gaussian(mean, std) for mean, std in zip(step.means, step.stds, strict=True)]

    def _limits(self, step: Step) -> list[Limits]:
        groups = self._groups()
        limits = []
        for p in step.params:
            group = groups[p]
            lr = group["lr"].reshape(()) if isinstance(group["lr"], Tensor) else group["lr"]
            limits.append(Limits(lr, group["std_min"], std_max_of(p, self.state, group)))
        return limits

    @staticmethod
    def _compiled_update(step: Step, expectations: Expectations, limits: list[Limits]) -> None:
        rows = [i for i, known in enumerate(expectations.has_gradient) if known]
        # Numbers as tensors, so that a scheduler's new value does not compile again; in full precision.
        lrs = [torch.as_tensor(limits[i].lr, dtype=torch.float64) for i in rows]
        means = [step.means[i] for i in rows]
        compiled_update(tuple((mean.shape, mean.dtype) for mean in means))(
            means,
            [step.stds[i] for i in rows],
            [expectations.e_g[i] for i in rows],
            [expectations.e_g_eps[i] for i in rows],
            [(limits[i].std_min, limits[i].std_max) for i in rows],
            lrs,
            torch.tensor(expectations.scale, dtype=torch.float64),
        )

    @torch.no_grad()
    def _restore(self, step: Step, posterior: Sequence[Gaussian]) -> None:
        for mean, std, wanted in zip(step.means, step.stds, posterior, strict=False):
            mean.copy_(wanted.mean)
            std.copy_(wanted.std)

    def batched(
        self,
        model: nn.Module,
        objective: Objective,
        *,
        chunk_size: int | None = None,
        compile: bool | None = None,
    ) -> BatchedStep:
        """A step that evaluates all K networks in one pass: see :class:`bgd.optim.BatchedStep`.

        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = BGD(model.parameters())
        >>> def objective(net, x, y):
        ...     return torch.nn.functional.cross_entropy(net(x), y, reduction="sum")
        >>> step = optimizer.batched(model, objective, compile=False)
        >>> loss = step(torch.randn(8, 3), torch.randint(2, (8,)))
        """
        return BatchedStep(self, model, objective, chunk_size=chunk_size, compile=compile)

    # --- modules and diagnostics

    @property
    def _statistics(self) -> RunningStatistics:
        if self._running_statistics is None:
            models = find_models(self._params())
            self._check_models(models)
            self._running_statistics = RunningStatistics(models)
            tables = (m for model in models for m in model.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag))
            self._embeddings = {table.weight for table in tables}
        return self._running_statistics

    def _check_models(self, models: list[nn.Module]) -> None:
        """Check the modules around the parameters, before the first step."""
        if averages_gradients(models, self._params()):
            raise RuntimeError(
                "the model is wrapped in DistributedDataParallel, which averages the gradients that BGD sums: "
                "use bgd.DistributedBGD, which gives the update of one process"
            )

    def _health(self, step: Step, expectations: Expectations) -> Health:
        groups = self._groups()
        # An embedding's gradient is 0 in all rows that the batch does not use, that of a part that was left out of
        # the graph everywhere: that means nothing.
        gradients = [
            g if known and p not in self._embeddings else None
            for p, g, known in zip(step.params, expectations.e_g, expectations.has_gradient, strict=True)
        ]
        return examine(step.stds, [std_init_of(p, self.state, groups[p]) for p in step.params], gradients)

    # --- state and checks

    def _own_state(self) -> dict[str, Any]:
        shared = self._passes.shared if self._passes is not None else self._shared_params
        return {
            **super()._own_state(),
            "batch_shapes": self.batch_shapes.state_dict(),
            "collapse_watch": self._watch.state_dict(),
            "shared_params": sorted(shared),
        }

    def _load_own_state(self, state: dict[str, Any]) -> None:
        super()._load_own_state(state)
        self.batch_shapes.load_state_dict(state["batch_shapes"])
        self._watch.load_state_dict(state["collapse_watch"])
        self._shared_params = frozenset(state["shared_params"])
        if self._passes is not None:
            self._passes.shared = self._shared_params

    def __getstate__(self) -> dict[str, Any]:
        shared = frozenset(self._own_state()["shared_params"])
        return {**super().__getstate__(), "batch_shapes": self.batch_shapes, "_shared_params": shared}


class _SkipStep(Exception):
    """A step without a finite gradient, to be skipped."""
