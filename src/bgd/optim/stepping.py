"""An optimizer whose step takes E[g] and E[g eps] from an estimator. How they move the posterior is a subclass's.

A step estimates, checks that what it found is finite, updates, and cleans up; on an error everything is as before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

import torch
from torch import Tensor, nn

from bgd.optim.base import Params, PosteriorOptimizer
from bgd.optim.batchnorm import RunningStatistics
from bgd.optim.checkpoint import StateDictError, list_of, one_of, record, text, whole
from bgd.optim.compilation import MAX_COMPILED_SHAPES, BatchShapes
from bgd.optim.diagnostics import DROWNED, FIRST_STEPS, REMEDY, CollapseWatch, Health, examine, noise_ratio
from bgd.optim.estimators.base import Alone, Estimator, Expectations, Sharing, Step
from bgd.optim.estimators.batched import BatchedStep, Objective
from bgd.optim.estimators.gradient_sums import GradientSumBuffers, GradientSums
from bgd.optim.estimators.passes import Closure, Host, Passes, Reduction, SharedPasses
from bgd.optim.estimators.per_example import PerExample
from bgd.optim.modules import averages_gradients, find_models
from bgd.optim.noise import NoiseKind
from bgd.optim.posterior import read_means, separate_means, share_means, std_init_of, write_weights
from bgd.optim.validation import MAX_SAMPLES, check_batch_size, check_samples
from bgd.validation import check_choice

EstimatorName = Literal["per_example", "shared"]

PASSES: dict[EstimatorName, type[PerExample] | type[SharedPasses]] = {
    "per_example": PerExample,
    "shared": SharedPasses,
}
"""The estimators of a training loop, by name."""

_SIGNS = 2  # a stream of noise apart from those of training and of samples


class EstimatorOptimizer(PosteriorOptimizer):
    """A posterior that is updated from the expectations of an estimator; a subclass defines ``_update``.

    Args:
        params: as for any torch optimizer.
        defaults: of the groups.
        mc_samples: K, the number of sampled networks, or of passes of a closure.
        estimator: ``"per_example"`` or ``"shared"``.
        reduction: what the loss is over the batch: its ``"mean"`` or ``"sum"``.
        nonfinite: what to do with a gradient that is NaN or infinite, or a step that leads to such a mean: ``"raise"``,
            or ``"skip"`` the whole step.
        antithetic: noise in pairs (+eps, -eps).
        noise: None for the estimator's own: ``"table"`` for each example, ``"torch"`` for sampled networks.
        seed: of the noise.
        generator: to draw the seed from.
    """

    own_settings = (
        *PosteriorOptimizer.own_settings,
        *("mc_samples", "estimator", "reduction", "nonfinite", "skipped_steps"),
    )

    checks = PosteriorOptimizer.checks | {
        "mc_samples": whole(1, MAX_SAMPLES),
        "estimator": one_of(PASSES),
        "reduction": one_of(("sum", "mean")),
        "nonfinite": one_of(("raise", "skip")),
        "skipped_steps": whole(),
        "batch_shapes": record(compiled=list_of(text, MAX_COMPILED_SHAPES), last=text),
        "collapse_watch": record(
            dead_checks=whole(), skipped=whole(), moved=lambda moved: isinstance(moved, int | float)
        ),
        "shared_params": list_of(whole()),
    }

    def __init__(
        self,
        params: Params,
        defaults: dict[str, Any],
        *,
        mc_samples: int = 1,
        estimator: EstimatorName = "per_example",
        reduction: Reduction = "mean",
        nonfinite: Literal["raise", "skip"] = "raise",
        antithetic: bool = False,
        noise: NoiseKind | None = None,
        seed: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        check_samples(mc_samples)
        check_choice("estimator", estimator, tuple(PASSES))
        check_choice("reduction", reduction, ("sum", "mean"))
        check_choice("nonfinite", nonfinite, ("raise", "skip"))
        if antithetic and mc_samples % 2:
            raise ValueError(f"antithetic noise comes in pairs: mc_samples must be even, got {mc_samples}")
        self.mc_samples = mc_samples
        self.estimator: EstimatorName = estimator
        self.reduction: Reduction = reduction
        self.nonfinite = nonfinite
        self.skipped_steps = 0
        self.batch_shapes = BatchShapes()
        self._shared_params: frozenset[int] = frozenset()
        super().__init__(
            params,
            defaults,
            antithetic=antithetic,
            noise=noise or PASSES[estimator].default_noise,
            seed=seed,
            generator=generator,
        )
        self._passes  # noqa: B018  (perturbs the model from the first pass on)

    def _reset(self) -> None:
        super()._reset()
        self._sharing: Sharing = Alone()
        self._watch = CollapseWatch()
        self._running_statistics: RunningStatistics | None = None
        self._embeddings: set[Tensor] = set()
        self._sum_buffers = GradientSumBuffers()
        self._attached: Passes | None = getattr(self, "_attached", None)  # torch resets an optimizer that it loads
        self._detach()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with settings of their own where given."""
        super().add_param_group(param_group)
        self._running_statistics = None  # new parameters may come with new modules
        if self._attached is not None:
            self._detach()
            self._passes  # noqa: B018

    @property
    def samples_networks(self) -> bool:
        """Whether a step draws K networks for the whole batch, which :meth:`batched` can evaluate in one pass."""
        return PASSES[self.estimator].samples_networks

    @property
    def _passes(self) -> Passes:
        if self._attached is None:
            host = Host(
                begin_step=lambda: self._begin_step(samples_in_weights=False),
                noise_key=lambda number: self._noise_key(_SIGNS, self.steps, number),
                enabled=lambda: not self._inside_sampled,
                models=lambda: find_models(self._params()),
                name_of=self.name_of,
            )
            self._attached = PASSES[self.estimator](host, self._shared_params)
        return self._attached

    def _detach(self) -> None:
        """Let the next pass find the modules again."""
        if self._attached is not None:
            self._shared_params = self._attached.shared
            self._attached.detach()
            self._attached = None

    # --- a step

    @overload  # type: ignore[override]
    def step(self, closure: None = None, *, batch_size: int | None = None) -> Tensor | None: ...
    @overload
    def step(self, closure: Closure, *, batch_size: int | None = None) -> Tensor: ...
    def step(self, closure: Closure | None = None, *, batch_size: int | None = None) -> Tensor | None:
        """Update the posterior; returns the mean loss of a closure, over its passes.

        Args:
            closure: clears the gradients, computes the loss, calls ``backward()`` and returns the loss: it is called
                ``mc_samples`` times. The per-example estimator needs none: call ``backward()`` before.
            batch_size: number of examples in a loss that is a mean. The per-example estimator counts them by itself.
        """
        self._check_between_steps("step()")
        passes = self._passes
        passes.check_batch_size(self.reduction, batch_size)
        try:
            estimator = passes.estimator(closure, self.mc_samples, self.reduction == "mean")
            return self._take_step(estimator, batch_size, passes.step)
        finally:
            passes.clear()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients, and with them what backward passes have added to E[g eps] since the last step."""
        super().zero_grad(set_to_none)
        self._passes.clear_gradients()

    @torch.optim.Optimizer.profile_hook_step
    def step_with(self, estimator: Estimator, *, batch_size: int | None = None) -> Tensor | None:
        """Update the posterior with the expectations of an estimator of one's own; returns its loss.

        >>> from bgd import BGD
        >>> p = torch.nn.Parameter(torch.zeros(1))
        >>> optimizer = BGD.paper([p], std_init=0.1)
        >>> def exact(step):  # L = theta: E[g] = 1, E[g eps] = 0
        ...     return Expectations([torch.ones(1)], [torch.zeros(1)], torch.tensor(0.0), has_gradient=[True])
        >>> _ = optimizer.step_with(exact)
        >>> round(p.item(), 6)
        -0.01
        """
        check_batch_size(self.reduction, batch_size)
        self._check_between_steps("step_with()")
        return self._take_step(estimator, batch_size, None)

    def batched(
        self, model: nn.Module, objective: Objective, *, chunk_size: int | None = None, compile: bool | None = None
    ) -> BatchedStep:
        """A step that evaluates all K networks in one pass: see :class:`bgd.optim.BatchedStep`.

        >>> from bgd import BGD
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = BGD.paper(model.parameters(), std_init=0.02)
        >>> def objective(net, x, y):
        ...     return torch.nn.functional.cross_entropy(net(x), y, reduction="sum")
        >>> step = optimizer.batched(model, objective, compile=False)
        >>> loss = step(torch.randn(8, 3), torch.randint(2, (8,)))
        """
        return BatchedStep(self, model, objective, chunk_size=chunk_size, compile=compile)

    def _take_step(self, estimator: Estimator, batch_size: int | None, step: Step | None) -> Tensor | None:
        """Estimate, update, clean up; on an error everything is as it was before the step."""
        self._opt_called = True  # torch's schedulers check it; not every step goes through ``step``
        if step is None:
            step = self._begin_step()
        else:  # weights may have been set since its first forward pass
            read_means(step.params, self.state)
        step.batch_factor = float(batch_size) if self.reduction == "mean" and batch_size is not None else 1.0
        step.examples = batch_size or 0
        if not self.steps:
            self._watch.check_noise(noise_ratio(step.means, step.stds))
        expectations: Expectations | None = None
        self._in_step = True
        try:
            try:
                expectations = self._update(step, lambda: self._estimated(step, estimator))
                loss = expectations.loss
            except SkipStep as skipped:
                loss = skipped.loss
            if expectations is None:
                self.skipped_steps += 1
                step.statistics.abort()
            else:
                step.statistics.commit()
            self._watch.record_step(expectations is None, self.steps)
        except BaseException:
            step.statistics.abort()
            raise
        finally:
            self._in_step = False
            step.write(None)
        self.steps += 1
        if expectations is not None and self._watch.due(self.steps):  # may raise, where warnings are errors
            self._watch.check(self._health(step, expectations), self.steps)
            if self.steps <= FIRST_STEPS:
                self._watch.check_move(self._relative_move(step, expectations), self.steps)
        for callback in step.afterwards:
            callback()
        return loss

    def _begin_step(self, samples_in_weights: bool = True) -> Step:
        statistics = self._statistics  # finds the modules, and refuses some, before anything has begun
        params = self._learning()
        if not params:
            raise RuntimeError("no parameter requires a gradient: there is nothing to sample")
        read_means(params, self.state)
        (separate_means if samples_in_weights else share_means)(params, self.state)
        stds = [self.state[p]["std"] for p in params]
        return Step(
            params=params,
            means=[self.state[p]["mean"] for p in params],
            stds=stds,
            samples=self._sharing.samples(self.mc_samples),
            noise=lambda samples: self._training_noise(params, samples),
            write=lambda eps: write_weights(params, self.state, eps),
            new_sums=lambda: GradientSums(params, *self._sum_buffers.zeros(stds)),
            statistics=statistics,
            sharing=self._sharing,
            antithetic=self.antithetic,
        )

    def _update(self, step: Step, estimate: Callable[[], Expectations]) -> Expectations:
        """Move the posterior in place, or leave it as it was and raise; returns the expectations it moved by."""
        raise NotImplementedError

    def _relative_move(self, step: Step, expectations: Expectations) -> float:
        """By what fraction of their size the weights have moved in a step; 1 where it is not known."""
        del step, expectations
        return 1.0

    def _examples(self, step: Step, expectations: Expectations, setting: str) -> int:
        """How many examples the batch has, which a setting must know."""
        if count := expectations.examples or step.examples:
            return count
        raise RuntimeError(
            f"{setting} counts examples, and nothing has said how many the batch has: use "
            'estimator="per_example", or reduction="mean" and step(closure, batch_size=len(x))'
        )

    def _estimated(self, step: Step, estimator: Estimator) -> Expectations:
        """What the estimator returns, once it is known to be finite."""
        expectations = estimator(step)
        if wrong := expectations.nonfinite():
            self._refuse(step, expectations, wrong, "NaN or infinite gradient")
        return expectations

    def _refuse(self, step: Step, expectations: Expectations, wrong: list[int], what: str) -> None:
        """Skip the step or raise, for what is wrong with these parameters."""
        if self.nonfinite == "skip":
            raise SkipStep(expectations.loss)
        names = ", ".join(self.name_of(step.params[i]) for i in wrong[:5])
        message = self._health(step, expectations).message
        if message is None and (noise := noise_ratio(step.means, step.stds)) > DROWNED:
            message = f"The noise is {noise:.2g} times the size of the weights."
        advice = (
            f"{message} {REMEDY}"
            if message
            else f'Check the batch and the loss, or pass nonfinite="skip" to {type(self).__name__} to skip it.'
        )
        raise FloatingPointError(f"{what} in {names} at step {self.steps}: the posterior is unchanged. {advice}")

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

    def check_posterior(self) -> None:
        """Warn now if stds have exploded or vanished, rather than at one of the next steps: for the end of training.

        Nothing happens before the first step, or after an earlier warning.
        """
        if self.steps and not self._watch.warned:
            params, groups = self._learning(), self._groups()
            initial = [std_init_of(p, self.state, groups[p]) for p in params]
            self._watch.check(
                examine([self.state[p]["std"] for p in params], initial, [None] * len(params)), self.steps
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

    # --- state

    def _check_state_dict(self, state_dict: Any) -> None:
        super()._check_state_dict(state_dict)
        own = state_dict["bgd"]
        if own["antithetic"] and own["mc_samples"] % 2:
            raise StateDictError(f"bgd['mc_samples'] is {own['mc_samples']}, and antithetic noise comes in pairs")
        if own["shared_params"] and max(own["shared_params"]) >= (count := len(self._params())):
            raise StateDictError(f"bgd['shared_params'] is {own['shared_params']}: there are {count} parameters")

    def _own_state(self) -> dict[str, Any]:
        shared = self._attached.shared if self._attached is not None else self._shared_params
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
        self._detach()
        self._shared_params = frozenset(state["shared_params"])
        self._passes  # noqa: B018

    def __getstate__(self) -> dict[str, Any]:
        shared = frozenset(self._own_state()["shared_params"])
        return {**super().__getstate__(), "batch_shapes": self.batch_shapes, "_shared_params": shared}


class SkipStep(Exception):
    """A step without a finite gradient, to be skipped.

    Attributes:
        loss: what the step would have returned.
    """

    def __init__(self, loss: Tensor | None) -> None:
        super().__init__()
        self.loss = loss
