"""Bayesian Gradient Descent as a PyTorch optimizer.

An estimator (:mod:`bgd.optim.estimators`) turns a batch into E[g] and E[g eps]; :mod:`bgd.optim.update` turns them into
the next posterior; :mod:`bgd.optim.stepping` is the step around them. Here are BGD's settings, and its update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Self

import torch
from torch import Tensor

from bgd.optim.base import Params
from bgd.optim.checkpoint import flag, number, whole
from bgd.optim.estimators.base import Expectations, Step
from bgd.optim.in_place import update_in_place
from bgd.optim.noise import NoiseKind
from bgd.optim.overflow import may_overflow, overflown
from bgd.optim.posterior import std_max_of
from bgd.optim.stepping import EstimatorOptimizer
from bgd.optim.update import Expected, Gaussian, Limits, compiled_update, solve_implicit
from bgd.optim.validation import POSITIVE_OR_NONE, StdInit, warn_of_small_lr
from bgd.optim.window import check_windows, keep_prior_means, prior_of, tether
from bgd.validation import check_whole

PAPER: dict[str, Any] = {
    "estimator": "shared",
    "mc_samples": 10,
    "reduction": "sum",
    "std_max": None,
    "max_move": None,
    "boost": None,
}
"""The settings of :meth:`BGD.paper`."""


def boosted(boost: float | None, examples: int) -> float:
    """How many times each example of a batch counts: those of a small batch about as many as a large one has.

    Below five examples it grows no further: the posterior would be certain too soon to follow a change.

    >>> [round(boosted(256, examples), 1) for examples in (1, 16, 128, 512)]
    [32.0, 13.5, 2.0, 1.0]
    """
    return max(1.0, boost / (max(examples, 5) + 3)) if boost and examples else 1.0


class BGD(EstimatorOptimizer):
    r"""Bayesian Gradient Descent: a Gaussian (mean, std) per weight, updated in closed form from noisy gradients.

    With theta = mean + std * eps and g the gradient of the *summed* loss of a batch, a step is (the paper's
    Algorithm 1)

    .. math::
        \mu \leftarrow \mu - \eta \sigma^2 E[g], \qquad
        \sigma \leftarrow \sigma \exp(-\operatorname{asinh}(\sigma E[g \varepsilon] / 2)).

    By default one forward and backward pass estimates both expectations: while the model trains, each example sees
    weights with noise of its own. Between passes, and in ``eval()``, the weights of the model are the mean. The paper's
    own algorithm is :meth:`paper`.

    The mean moves like SGD with the learning rate ``lr * std^2 * batch`` for a mean loss. With ``boost`` the examples
    of a small batch count ``max(1, boost / (max(batch, 5) + 3))`` times, in both lines. All settings but the parameters
    are keywords: a step size of Adam's, 1e-3, means nothing here.

    Args:
        params: parameters, named parameters or parameter groups, as for any torch optimizer. Groups may have their
            own ``lr``, ``std_init``, ``std_min``, ``std_max``, ``max_move``, ``boost`` and ``memory``.
        std_init: std before any data: a number, a tensor, one tensor per parameter, or a function from a parameter to
            a number or tensor. None for ``1 / sqrt(2 fan_in)``, half of it for convolutions
            (:func:`bgd.optim.validation.fan_in_stds`). The paper sets it by hand, from 0.01 to 0.06.
        lr: scales the step of the mean; 1 is right, and schedulers may lower it.
        mc_samples: K, the number of passes of a closure, or of sampled networks per step.
        estimator: ``"per_example"``: noise of its own for each example, so that ``loss.backward()`` and ``step()`` are
            enough. ``"shared"``: K sampled networks, each for the whole batch, as in the paper: :meth:`step` needs a
            closure.
        std_min: floor of the std. Without it only the limits of the floating-point format apply.
        std_max: ceiling of the std: a number, ``"init"`` for each weight's initial std, which keeps training stable
            with few samples or a large ``std_init``, or None as in the paper.
        max_move: by how many of its stds a mean may move in a step; None for no limit, as in the paper.
        boost: a small batch counts as one of about so many examples: E[g] and E[g eps] are multiplied by
            max(1, boost / (max(batch, 5) + 3)), where the number of examples is known. Data that count more are learned
            faster, and make the posterior certain sooner. None for no such factor, as in the paper.
        memory: a window: what an example has taught fades as exp(-n / memory) with the n examples after it, and every
            weight returns to its prior, which is its initial mean and std (:mod:`bgd.optim.window`). None as in the
            paper: nothing fades. Sampled networks need ``reduction="mean"`` and ``step(closure, batch_size=...)``.
        reduction: what the loss is: the ``"mean"`` over the batch, or its ``"sum"``. Both give the same update. Without
            a closure the examples are counted as the model sees them; with ``estimator="shared"`` a mean needs
            ``step(closure, batch_size=...)``.
        antithetic: draw networks in pairs (+eps, -eps).
        noise: ``"table"``, ``"torch"`` or ``"hash"``, see :mod:`bgd.optim.noise`; None for ``"table"`` in the
            per-example estimator, ``"torch"`` in the shared one.
        seed: of the noise. Default: torch's global seed, which is read and never changed. Two optimizers of one seed
            share their noise: members of an ensemble, or optimizers of parts of one network, need different seeds.
        generator: a generator to draw the seed from, instead of ``seed``.
        compile: compile the update, where there is a compiler: one pass over memory, after a slow first step. The
            numbers are the same to rounding.
        implicit_iterations: at most how often to iterate the implicit equations that the paper derives; 1 is the
            paper's algorithm. All iterations of a step share their noise.
        implicit_tolerance: stop iterating when no mean and no std moves by more than this fraction of the prior's std.
        implicit_damping: the fraction of the way that each of several iterations goes.
        nonfinite: what to do with a gradient that is NaN or infinite, or a step that leads to such a mean: ``"raise"``,
            or ``"skip"`` the whole step.

    Example:
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = BGD(model.parameters())
        >>> x, y = torch.randn(8, 3), torch.randint(2, (8,))
        >>> optimizer.zero_grad()
        >>> torch.nn.functional.cross_entropy(model(x), y).backward()
        >>> optimizer.step()
        >>> bool(torch.equal(optimizer.state[model.weight]["mean"], model.weight))
        True
    """

    own_settings = (
        *EstimatorOptimizer.own_settings,
        *("compile", "implicit_iterations", "implicit_tolerance", "implicit_damping"),
    )

    checks = EstimatorOptimizer.checks | {
        "compile": flag,
        "implicit_iterations": whole(1),
        "implicit_tolerance": number(),
        "implicit_damping": number(0, 1),
    }

    rules = dict.fromkeys(("max_move", "boost", "memory"), POSITIVE_OR_NONE)

    def __init__(
        self,
        params: Params,
        *,
        std_init: StdInit | None = None,
        lr: float | Tensor = 1.0,
        mc_samples: int = 1,
        estimator: Literal["shared", "per_example"] = "per_example",
        std_min: float | None = None,
        std_max: float | Literal["init"] | None = "init",
        max_move: float | None = 0.5,
        boost: float | None = 256.0,
        memory: float | None = None,
        reduction: Literal["sum", "mean"] = "mean",
        antithetic: bool = False,
        noise: NoiseKind | None = None,
        seed: int | None = None,
        generator: torch.Generator | None = None,
        compile: bool = False,
        implicit_iterations: int = 1,
        implicit_tolerance: float = 1e-6,
        implicit_damping: float = 1.0,
        nonfinite: Literal["raise", "skip"] = "raise",
    ) -> None:
        check_whole(1, implicit_iterations=implicit_iterations)
        if not 0 < implicit_damping <= 1:
            raise ValueError(f"implicit_damping must be in (0, 1], got {implicit_damping}")
        self.compile = compile
        self.implicit_iterations = implicit_iterations
        self.implicit_tolerance = implicit_tolerance
        self.implicit_damping = implicit_damping
        defaults = {"lr": lr, "std_init": std_init, "std_min": std_min, "std_max": std_max}
        super().__init__(
            params,
            {**defaults, "max_move": max_move, "boost": boost, "memory": memory},
            mc_samples=mc_samples,
            estimator=estimator,
            reduction=reduction,
            nonfinite=nonfinite,
            antithetic=antithetic,
            noise=noise,
            seed=seed,
            generator=generator,
        )
        warn_of_small_lr(self.param_groups)

    @classmethod
    def paper(cls, params: Params, std_init: StdInit, **settings: Any) -> Self:
        """The paper's own algorithm: ten sampled networks per step, no cap, no limit; needs ``step(closure)``.

        The closure returns the loss summed over the batch. ``settings`` override, such as ``mc_samples=2``.

        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = BGD.paper(model.parameters(), std_init=0.02)
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = model(torch.ones(8, 3)).square().sum()
        ...     loss.backward()
        ...     return loss
        >>> loss = optimizer.step(closure)
        """
        return cls(params, std_init=std_init, **{**PAPER, **settings})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with settings of their own where given."""
        super().add_param_group(param_group)
        keep_prior_means(self.state, self.param_groups[-1])

    def _check_state_dict(self, state_dict: Any) -> None:
        super()._check_state_dict(state_dict)
        check_windows(state_dict)

    @torch.no_grad()
    def _update(self, step: Step, estimate: Callable[[], Expectations]) -> Expectations:
        groups = self._groups()
        memories = [groups[p]["memory"] for p in step.params]
        if not any(memories):
            return self._learn(step, estimate)

        def counted() -> Expectations:
            expectations = estimate()
            self._examples(step, expectations, "memory")  # before anything moves
            return expectations

        expectations = self._learn(step, counted)
        examples = self._examples(step, expectations, "memory")
        for p, posterior, memory in zip(step.params, self._posterior(step), memories, strict=True):
            if memory:
                tether(posterior, *prior_of(p, self.state, groups[p]), examples / memory)
        return expectations

    def _learn(self, step: Step, estimate: Callable[[], Expectations]) -> Expectations:
        """What the paper's update makes of the batch."""
        if self.implicit_iterations > 1:
            return self._update_implicitly(step, estimate)
        expectations = estimate()
        limits, posterior = self._limits(step, expectations.examples), self._posterior(step)
        if not may_overflow(step.params, posterior, expectations, limits):
            self._move(posterior, expectations, limits)
            return expectations
        tried = [Gaussian(*map(torch.clone, g)) for g in posterior]
        self._move(tried, expectations, limits)
        if wrong := overflown(step.params, tried):
            self._refuse(step, expectations, wrong, "the step leads to a NaN or infinite mean")
        self._set_posterior(step, tried)
        return expectations

    def _move(self, posterior: list[Gaussian], expectations: Expectations, limits: list[Limits]) -> None:
        """Write the next posterior over this one."""
        if expectations.compiled or self.compile:
            self._compiled_update(posterior, expectations, limits)
        else:
            found = expectations
            update_in_place(posterior, found.sums(), limits, found.scale, found.in_stds, found.ends)

    def _update_implicitly(self, step: Step, estimate: Callable[[], Expectations]) -> Expectations:
        """The fixed point of the update, where the expectations are those of the posterior that it gives."""
        before = [Gaussian(*map(torch.clone, g)) for g in self._posterior(step)]
        try:
            last = [estimate()]
            limits = self._limits(step, last[0].examples)

            def expected(current: Sequence[Gaussian]) -> Iterable[Expected]:
                if current[0].mean is not before[0].mean:
                    self._set_posterior(step, current)
                    step.write(None)
                    step.statistics.abort()
                    step.sums.clear()
                    last[0] = estimate()
                return last[0].scaled(step.stds)

            found = solve_implicit(
                before, expected, limits, self.implicit_iterations, self.implicit_tolerance, self.implicit_damping
            )
            if wrong := overflown(step.params, found.posterior):
                self._refuse(step, last[0], wrong, "the step leads to a NaN or infinite mean")
        except BaseException:
            self._set_posterior(step, before)
            raise
        self._set_posterior(step, found.posterior)
        return last[0]

    @torch.no_grad()
    def _relative_move(self, step: Step, expectations: Expectations) -> float:
        moved, size = 0.0, 0.0
        for mean, std, (g, _), limit in zip(
            step.means, step.stds, expectations.sums(), self._limits(step, expectations.examples), strict=True
        ):
            if g is not None:
                step_size = expectations.scale * limit.weight * float(limit.lr)
                moves = std * g if step_size == 1 else (std * g).mul_(step_size)
                moves = moves if limit.max_move is None else moves.clamp_(-limit.max_move, limit.max_move)
                moved += float(moves.mul_(std).norm()) ** 2
                size += float(mean.norm()) ** 2
        return (moved / size) ** 0.5 if size else 1.0

    @staticmethod
    def _posterior(step: Step) -> list[Gaussian]:
        return [Gaussian(mean, std) for mean, std in zip(step.means, step.stds, strict=True)]

    def _limits(self, step: Step, examples: int) -> list[Limits]:
        limits = {}
        for group in self.param_groups:
            lr = group["lr"].reshape(()) if isinstance(group["lr"], Tensor) else group["lr"]
            weight = boosted(group["boost"], examples)
            for p in group["params"]:
                ceiling = std_max_of(p, self.state, group)
                limits[id(p)] = Limits(lr, group["std_min"], ceiling, group["max_move"], weight)
        return [limits[id(p)] for p in step.params]

    @staticmethod
    def _compiled_update(posterior: list[Gaussian], expectations: Expectations, limits: list[Limits]) -> None:
        rows = [i for i, known in enumerate(expectations.has_gradient) if known]
        # Numbers as tensors, so that a scheduler's new value does not compile again; in full precision.
        lrs = [torch.as_tensor(limits[i].lr, dtype=torch.float64) for i in rows]
        means = [posterior[i].mean for i in rows]
        compiled_update(tuple((mean.shape, mean.dtype) for mean in means))(
            means,
            [posterior[i].std for i in rows],
            [expectations.e_g[i] for i in rows],
            [expectations.e_g_eps[i] for i in rows],
            [(limits[i].std_min, limits[i].std_max, limits[i].max_move) for i in rows],
            lrs,
            [torch.tensor(expectations.scale * limits[i].weight, dtype=torch.float64) for i in rows],
            expectations.in_stds,
        )

    @torch.no_grad()
    def _set_posterior(self, step: Step, posterior: Sequence[Gaussian]) -> None:
        for mean, std, wanted in zip(step.means, step.stds, posterior, strict=False):
            mean.copy_(wanted.mean)
            std.copy_(wanted.std)
