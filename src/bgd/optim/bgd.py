"""Bayesian Gradient Descent as a PyTorch optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from bgd.optim import noise as noises
from bgd.optim.batchnorm import RunningStatistics, find_models
from bgd.optim.compile_shapes import BatchShapes
from bgd.optim.diagnostics import REMEDY, CollapseWatch, Health, examine
from bgd.optim.estimators.gradient_sums import GradientSumBuffers, GradientSums
from bgd.optim.update_all import move, move_in_place
from bgd.optim.validation import (
    StdInit,
    check_group,
    check_std,
    posterior_dtype,
    resolve_seed,
    resolve_std,
)
from bgd.validation import check_choice, check_whole

if TYPE_CHECKING:
    from bgd.optim.estimators.batched import BatchedStep, Objective

Params = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]

# Separate streams of noise: looking at the posterior does not change how it is learned.
_TRAINING, _SAMPLED = 0, 1


class Paper(TypedDict):
    """Arguments of :class:`BGD`."""

    mc_samples: int
    std_max: None


PAPER: Paper = {"mc_samples": 10, "std_max": None}
"""The paper's own algorithm, where the defaults differ from it: ``BGD(model.parameters(), std_init, **PAPER)``."""


class BGD(Optimizer):
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
            a number or tensor. The one setting that wants care: the paper uses 0.01 to 0.06.
        mc_samples: K, the number of sampled networks per step. Two were as good as the paper's ten (:data:`PAPER`) on
            its fading tasks, where the std is capped.
        lr: the paper's eta, which scales the step of the mean.
        std_min: floor of the std. Without it only the limits of the floating-point format apply.
        std_max: ceiling of the std: a number, ``"init"`` for each weight's initial std, which keeps training stable
            with few samples or a large ``std_init``, or None as in the paper.
        reduction: what the closure's loss is: the ``"sum"`` over the batch, or its ``"mean"``, in which case
            :meth:`step` needs the ``batch_size``. Both give the same update.
        antithetic: draw networks in pairs (+eps, -eps).
        noise: ``"torch"`` or ``"hash"``, see :mod:`bgd.optim.noise`.
        seed: of the noise. Default: torch's global seed, which is read and never moved. Two optimizers of one seed draw
            the same noise: members of an ensemble, or optimizers of parts of one network, want seeds of their own.
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

    def __init__(
        self,
        params: Params,
        std_init: StdInit = 0.02,
        mc_samples: int = 2,
        lr: float | Tensor = 1.0,
        *,
        std_min: float | None = None,
        std_max: float | Literal["init"] | None = "init",
        reduction: Literal["sum", "mean"] = "sum",
        antithetic: bool = False,
        noise: noises.NoiseKind = "torch",
        seed: int | None = None,
        generator: torch.Generator | None = None,
        implicit_iterations: int = 1,
        implicit_tolerance: float = 1e-6,
        implicit_damping: float = 1.0,
        nonfinite: Literal["raise", "skip"] = "raise",
    ) -> None:
        check_whole(1, mc_samples=mc_samples)
        check_whole(1, implicit_iterations=implicit_iterations)
        check_choice("reduction", reduction, ("sum", "mean"))
        check_choice("noise", noise, noises.KINDS)
        check_choice("nonfinite", nonfinite, ("raise", "skip"))
        if antithetic and mc_samples % 2:
            raise ValueError(f"antithetic noise comes in pairs: mc_samples must be even, got {mc_samples}")
        if not 0 < implicit_damping <= 1:
            raise ValueError(f"implicit_damping must be in (0, 1], got {implicit_damping}")
        if seed is not None and generator is not None:
            raise ValueError("give seed or generator, not both")
        self.mc_samples = mc_samples
        self.reduction = reduction
        self.antithetic = antithetic
        self.noise: noises.NoiseKind = noise
        self.implicit_iterations = implicit_iterations
        self.implicit_tolerance = implicit_tolerance
        self.implicit_damping = implicit_damping
        self.nonfinite = nonfinite
        self.seed = resolve_seed(seed, generator)
        self.steps = 0
        self.skipped_steps = 0
        self.draws = 0
        self._shapes = BatchShapes()
        self._idle()
        if isinstance(params, nn.Module):
            raise TypeError(f"BGD needs parameters, and got the model {type(params).__name__}: give model.parameters()")
        super().__init__(params, {"lr": lr, "std_init": std_init, "std_min": std_min, "std_max": std_max})

    def _idle(self) -> None:
        """Everything that lives only while a step does, or can be found again."""
        self._pending: GradientSums | None = None
        self._inside_sampled = False
        self._watch = CollapseWatch()
        self._running_statistics: RunningStatistics | None = None
        self._embeddings: set[Tensor] = set()
        self._memory = noises.NoiseBuffers()
        self._sums = GradientSumBuffers()

    @property
    def _statistics(self) -> RunningStatistics:
        if self._running_statistics is None:
            models = find_models(self._params())
            self._check_models(models)
            self._running_statistics = RunningStatistics(models)
            tables = (m for model in models for m in model.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag))
            self._embeddings = {table.weight for table in tables}
        return self._running_statistics

    # --- the posterior

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with their own ``lr``, ``std_init``, ``std_min`` or ``std_max`` where given."""
        self._check_at_rest("add_param_group()")
        super().add_param_group(param_group)
        self._running_statistics = None  # new parameters may come with new modules
        group = self.param_groups[-1]
        try:
            check_group(group)
            stds = resolve_std(group["std_init"], group["params"])
            for p, std in zip(group["params"], stds, strict=True):
                check_std(group, std)
                self.state[p] = {"mean": p.detach().to(std.dtype, copy=True), "std": std}
        except Exception:
            for p in self.param_groups.pop()["params"]:
                self.state.pop(p, None)
            raise
        if not stds:
            return
        scale = float(torch.stack([s.double().mean() for s in stds]).mean())
        if not isinstance(group["std_init"], int | float):
            for p in group["params"]:
                self.state[p]["std_init"] = self.state[p]["std"].clone()
            # A function or a tensor has done its work; what a checkpoint keeps of it for the group is a number.
            group["std_init"] = scale

    def _params(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def _active(self) -> list[Tensor]:
        return [p for p in self._params() if p.requires_grad]

    def _uncertain(self) -> list[Tensor]:
        """What a look at the posterior draws: frozen weights too, once they have been learned.

        Those that were frozen from the start are as certain as whoever set them.
        """
        groups = {p: group for group in self.param_groups for p in group["params"]}
        return [
            p
            for p, group in groups.items()
            if p.requires_grad or bool((self.state[p]["std"] != self._std_init(p, group)).any())
        ]

    @torch.no_grad()
    def _adopt_mean(self, params: list[Tensor]) -> None:
        """Between steps the weights are the mean, so what they hold now, whoever wrote it, is the mean."""
        for p in params:
            state = self.state[p]
            if state["mean"].device != p.device:
                for key, value in state.items():
                    state[key] = value.to(p.device)
            mean = state["mean"]
            if p.dtype == mean.dtype:
                mean.copy_(p)
            else:  # rounding is no change: keep the bits that the weights do not hold
                mean.copy_(torch.where(p == mean.to(p.dtype), mean, p.to(mean.dtype)))

    @torch.no_grad()
    def _write(self, params: list[Tensor], eps: Sequence[Tensor] | None) -> None:
        """Set the weights to mean + std * eps, or to the mean."""
        for i, p in enumerate(params):
            mean, std = self.state[p]["mean"], self.state[p]["std"]
            if eps is None:
                p.copy_(mean)
            elif p.dtype == mean.dtype:
                torch.addcmul(mean, std, eps[i], out=p)
            else:
                p.copy_(torch.addcmul(mean, std, eps[i]))
        # autocast keeps its casts of the weights until its outermost end, and would run the network of before again
        torch.clear_autocast_cache()

    def _key(self, stream: int, *coordinates: int) -> int:
        return noises.fold(self.seed, stream, *coordinates)

    def _training_noise(self, params: list[Tensor], samples: Sequence[int]) -> list[Tensor]:
        """Noise of the given samples of this step, stacked: one tensor (len(samples), *p.shape) per parameter.

        It is good until the next call, which uses the same memory.
        """
        if not self.antithetic:
            return self._noise(params, [self._key(_TRAINING, self.steps, k) for k in samples])
        pairs = sorted({k // 2 for k in samples})
        eps = self._noise(params, [self._key(_TRAINING, self.steps, pair) for pair in pairs])
        rows = [pairs.index(k // 2) for k in samples]
        signs = [1.0 - 2.0 * (k % 2) for k in samples]
        if rows == [0]:
            return eps if signs[0] > 0 else [e.neg_() for e in eps]
        return [e[rows] * e.new_tensor(signs).view(-1, *[1] * (e.dim() - 1)) for e in eps]

    def _noise(self, params: list[Tensor], keys: Sequence[int], keep: bool = True) -> list[Tensor]:
        return self._memory.normal(self.noise, keys, [self.state[p]["mean"] for p in params], keep)

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
                once per sampled network. Without it, the samples of :meth:`draw` and :meth:`accumulate` are used.
            batch_size: number of examples behind the loss; needed where ``reduction="mean"``.
        """
        self._check_batch_size(batch_size)
        if closure is None:
            if self.implicit_iterations > 1:
                raise RuntimeError("implicit_iterations above 1 needs step(closure): it samples several times")
            if self._pending is None or not self._pending.count:
                raise RuntimeError("step() without samples: call step(closure), or draw() and accumulate() first")
            if self._pending.eps is not None:
                raise RuntimeError("step() after draw(): call accumulate() first, or discard()")
            return self._run_step(lambda: None, batch_size)

        def sample_all() -> None:
            for _ in self._own_samples():
                self.draw()
                with torch.enable_grad():
                    loss = closure()
                if loss is None:
                    raise RuntimeError("the closure returned None: it must return the loss")
                self.accumulate(loss)

        self._check_at_rest("step(closure)")
        return self._run_step(sample_all, batch_size)

    @torch.optim.Optimizer.profile_hook_step
    def _hooked(self, take: Callable[[], Tensor]) -> Tensor:
        """A step that does not go through :meth:`step`, between the same hooks."""
        return take()

    def _run_step(
        self, sample_all: Callable[[], None], batch_size: int | None, compiled: bool = False
    ) -> Tensor | None:
        """One step around ``sample_all``, which fills the pending sums: estimate, update, end."""
        self._opt_called = True  # what a scheduler of torch asks for; a batched step does not go through ``step``
        prior: _Prior | None = None
        if self.implicit_iterations > 1:
            active = self._active()
            self._adopt_mean(active)
            prior = {p: (self.state[p]["mean"].clone(), self.state[p]["std"].clone()) for p in active}
        try:
            for iteration in range(self.implicit_iterations):
                if iteration:
                    self.discard()
                sample_all()
                if not self._estimate(batch_size):
                    self._restore(prior)
                    self._statistics.abort()
                    self.skipped_steps += 1
                    self._watch.passed_over(True, self.steps)
                    break
                self._watch.passed_over(False, self.steps)
                if self._update(prior, compiled) <= self.implicit_tolerance:
                    break
            done = self._pending
            loss = self._end_step()
        except BaseException:
            self._restore(prior)
            self.discard()
            raise
        if done is not None and self._watch.due(self.steps):  # may raise, where warnings are errors: the step is taken
            self._watch.look(self._health(done), self.steps)
        return loss

    def draw(self) -> None:
        """Set the weights to the next sampled network of this step, and clear the gradients.

        With :meth:`accumulate` the long form of ``step(closure)``, for loops that cannot be a closure:

        >>> model = torch.nn.Linear(3, 1)
        >>> optimizer = BGD(model.parameters(), mc_samples=4)
        >>> for _ in range(optimizer.mc_samples):
        ...     optimizer.draw()
        ...     loss = model(torch.ones(2, 3)).square().sum()
        ...     loss.backward()
        ...     optimizer.accumulate(loss)
        >>> mean_loss = optimizer.step()
        """
        if self._inside_sampled:
            raise RuntimeError("draw() inside sampled(): leave the context first")
        pending = self._pending
        if pending is None:
            pending = self._begin()
            pending.untouched = set(pending.params)
        elif pending.eps is not None:
            raise RuntimeError("draw() twice: call accumulate() after backward(), or discard()")
        self._statistics.begin_sample()
        pending.eps = [e[0] for e in self._training_noise(pending.params, [self._sample_index(pending.count)])]
        self._write(pending.params, pending.eps)
        self.zero_grad()

    def _begin(self) -> GradientSums:
        _ = self._statistics  # looks at the modules, and refuses some, before anything is begun
        params = self._active()
        if not params:
            raise RuntimeError("no parameter requires a gradient: there is nothing to sample")
        self._adopt_mean(params)
        e_g, e_g_eps = self._sums.zeros([self.state[p]["std"] for p in params])
        self._pending = GradientSums(params, e_g, e_g_eps)
        return self._pending

    @torch.no_grad()
    def accumulate(self, loss: Tensor | float | None = None) -> None:
        """Count in the gradients of the network that :meth:`draw` made; ``loss`` only for what step returns."""
        pending = self._pending
        if pending is None or pending.eps is None:
            raise RuntimeError("accumulate() without draw(): draw a network, then call backward() on its loss")
        if all(p.grad is None for p in pending.params):
            raise RuntimeError("no parameter has a gradient: call backward() on the loss before accumulate()")
        self._statistics.end_sample()
        pending.add(pending.eps, loss)
        pending.eps = None

    @torch.no_grad()
    def discard(self) -> None:
        """Forget the samples of a step under way and set the weights back to the mean."""
        if self._pending is not None:
            self._write(self._pending.params, None)
            self._statistics.abort()
            self._pending = None

    @torch.no_grad()
    def _estimate(self, batch_size: int | None) -> bool:
        """Turn the pending sums into E[g] and E[g eps] of the summed loss; False where the step is to be skipped."""
        pending = self._pending
        assert pending is not None
        factor = self._reduce(pending, batch_size)  # from here on the count is that of all ranks
        if self.antithetic and pending.count % 2:
            raise RuntimeError(f"antithetic noise comes in pairs, got {pending.count} samples")
        pending.scale = factor / pending.count
        bad = pending.nonfinite()
        if not bad:
            return True
        if self.nonfinite == "skip":
            return False
        names = ", ".join(map(self._name, bad[:5]))
        complaint = self._health(pending).message
        raise FloatingPointError(
            f"NaN or infinite gradient in {names} at step {self.steps}: the posterior is unchanged. "
            + (
                f"{complaint} {REMEDY}"
                if complaint
                else 'Look at the batch and the loss, or pass nonfinite="skip" to BGD to pass over such batches.'
            )
        )

    @torch.no_grad()
    def _update(self, prior: _Prior | None, compiled: bool) -> float:
        """Move the posterior by the rules; returns the largest change in units of the prior's std (if one is given)."""
        pending = self._pending
        assert pending is not None
        position = {p: i for i, p in enumerate(pending.params)}
        rows = [
            (p, group, position[p])
            for group in self.param_groups
            for p in group["params"]
            if p in position and p not in pending.untouched
        ]
        states = [self.state[p] for p, _, _ in rows]
        priors = [
            prior[p] if prior is not None else (s["mean"], s["std"]) for (p, _, _), s in zip(rows, states, strict=True)
        ]
        lrs = [lr.reshape(()) if isinstance(lr := group["lr"], Tensor) else lr for _, group, _ in rows]
        arguments = (
            [mean for mean, _ in priors],
            [std for _, std in priors],
            [pending.e_g[i] for _, _, i in rows],
            [pending.e_g_eps[i] for _, _, i in rows],
            [(group["std_min"], self._std_max(p, group)) for p, group, _ in rows],
        )
        if compiled and prior is None:
            # Numbers as tensors, so that a scheduler's new value is no reason to compile anew; in full precision.
            numbers = [torch.as_tensor(lr, dtype=torch.float64) for lr in lrs]
            kinds = tuple((mean.shape, mean.dtype) for mean, _ in priors)
            move_in_place(kinds)(*arguments, numbers, torch.tensor(pending.scale, dtype=torch.float64))
            return 0.0
        torch._foreach_mul_([*pending.e_g, *pending.e_g_eps], pending.scale)
        moved = move(*arguments, lrs)
        change = 0.0
        for state, (_, prior_std) in zip(states, priors, strict=True):
            for key in ("mean", "std"):
                new = next(moved)
                if prior is not None:
                    new = torch.lerp(state[key], new, self.implicit_damping)
                    jump = (new - state[key]).abs() / prior_std
                    change = max(change, float(jump.amax()) if jump.numel() else 0.0)
                state[key].copy_(new)
                del new  # before the next one is made
        return change

    def _end_step(self) -> Tensor | None:
        pending = self._pending
        assert pending is not None
        self._write(pending.params, None)
        self._statistics.commit()
        self._pending = None
        self.steps += 1
        return pending.mean_loss()

    def _health(self, pending: GradientSums) -> Health:
        initial = {p: self._std_init(p, group) for group in self.param_groups for p in group["params"]}
        stds = [self.state[p]["std"] for p in pending.params]
        # An embedding's gradient is 0 in all rows that the batch does not use, that of a part that was left out of
        # the graph everywhere: that says nothing.
        silent = self._embeddings | pending.untouched
        gradients = [None if p in silent else g for p, g in zip(pending.params, pending.e_g, strict=True)]
        return examine(stds, [initial[p] for p in pending.params], gradients)

    @torch.no_grad()
    def _restore(self, prior: _Prior | None) -> None:
        for p, (mean, std) in (prior or {}).items():
            self.state[p]["mean"].copy_(mean)
            self.state[p]["std"].copy_(std)

    def _std_init(self, p: Tensor, group: dict[str, Any]) -> float | Tensor:
        initial: float | Tensor = self.state[p].get("std_init", group["std_init"])
        return initial

    def _std_max(self, p: Tensor, group: dict[str, Any]) -> float | Tensor | None:
        ceiling: float | Literal["init"] | None = group["std_max"]
        return self._std_init(p, group) if ceiling == "init" else ceiling

    # --- what a distributed optimizer does differently (see bgd.optim.estimators.distributed)

    def _own_samples(self) -> range:
        """Which of the K samples this process draws."""
        return range(self.mc_samples)

    def _sample_index(self, count: int) -> int:
        """The sample that follows after ``count`` samples of this process."""
        return count

    def _reduce(self, pending: GradientSums, batch_size: int | None) -> float:
        """Complete the sums; returns what turns them into sums over the examples of the batch."""
        del pending
        return float(batch_size) if self.reduction == "mean" and batch_size is not None else 1.0

    def _check_models(self, models: list[nn.Module]) -> None:
        """Look at the modules around the parameters, before the first step."""
        if _averages_gradients(models, self._params()):
            raise RuntimeError(
                "the model is wrapped in DistributedDataParallel, which averages the gradients that BGD sums: "
                "use bgd.DistributedBGD, which gives the update of one process"
            )

    # --- looking at the posterior

    @contextmanager
    def sampled(self) -> Iterator[None]:
        """Inside, the weights are one draw from the posterior; the mean comes back on exit, also on an exception.

        Weights that were learned and then frozen are drawn too; those that were frozen from the start are not.

        >>> model = torch.nn.Linear(3, 1)
        >>> optimizer = BGD(model.parameters(), std_init=0.1)
        >>> before = model.weight.clone()
        >>> with optimizer.sampled():
        ...     print(torch.equal(model.weight, before))
        False
        >>> torch.equal(model.weight, before)
        True
        """
        if self._inside_sampled:
            raise RuntimeError("sampled() inside sampled(): one draw at a time")
        self._check_no_samples("sampled()")
        params = self._uncertain()
        self._adopt_mean(params)
        eps = [e[0] for e in self._posterior_noise(params, 1)]
        self._inside_sampled = True
        try:
            self._write(params, eps)
            yield
        finally:
            self._write(params, None)
            self._inside_sampled = False

    @torch.no_grad()
    def sample_weights(self, count: int) -> dict[Tensor, Tensor]:
        """``count`` draws from the posterior as tensors: stacked along the first dimension, per parameter.

        They are the networks that as many uses of :meth:`sampled` would show; the weights of the model stay untouched.

        >>> model = torch.nn.Linear(3, 1)
        >>> BGD(model.parameters()).sample_weights(5)[model.weight].shape
        torch.Size([5, 1, 3])
        """
        check_whole(1, count=count)
        self._check_at_rest("sample_weights()")
        params = self._uncertain()
        self._adopt_mean(params)
        eps = self._posterior_noise(params, count)
        return {
            p: torch.addcmul(self.state[p]["mean"], self.state[p]["std"], e).to(p.dtype)
            for p, e in zip(params, eps, strict=True)
        }

    def _posterior_noise(self, params: list[Tensor], count: int) -> list[Tensor]:
        first, self.draws = self.draws, self.draws + count
        return self._noise(params, [self._key(_SAMPLED, first + i) for i in range(count)], keep=False)

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
        from bgd.optim.estimators.batched import BatchedStep

        return BatchedStep(self, model, objective, chunk_size=chunk_size, compile=compile)

    # --- saving and copying

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs: posterior, groups, and the noise's seed and position.

        Plain tensors, numbers and strings: ``torch.load(..., weights_only=True)`` reads it.
        """
        self._check_at_rest("state_dict()")
        self._adopt_mean(self._params())  # frozen ones may have been set
        return {**super().state_dict(), "bgd": self._position()}

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` saved, on the parameters' devices, and set the weights to the mean.

        As for every torch optimizer the settings come back too, ``mc_samples`` and all: change them afterwards.
        """
        self._check_at_rest("load_state_dict()")
        if "bgd" not in state_dict:
            raise ValueError(f"not a state dict of BGD: it has the keys {sorted(state_dict)}, and 'bgd' is missing")
        params = self._params()
        saved = [state_dict["state"][i] for group in state_dict["param_groups"] for i in group["params"]]
        for p, state in zip(params, saved, strict=False):
            if state["mean"].shape != p.shape:
                raise ValueError(
                    f"the state dict has a posterior of shape {tuple(state['mean'].shape)} for {self._name(p)}: "
                    "is it of another model?"
                )
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "bgd"})
        for p, state in zip(params, saved, strict=True):
            # The base class casts state to the weights' own type; the posterior is kept in at least float32.
            own = {k: v.to(p.device, posterior_dtype(p), copy=True) for k, v in state.items()}
            if "std_max" in own:  # its name in early checkpoints
                own["std_init"] = own.pop("std_max")
            self.state[p] = own
            p.copy_(own["mean"])
        self._place(state_dict["bgd"])

    def _position(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in _OWN_SETTINGS},
            "shapes": self._shapes.state_dict(),
            "watch": self._watch.state_dict(),
        }

    def _place(self, position: dict[str, Any]) -> None:
        check_choice("noise", position["noise"], noises.KINDS)
        for name in _OWN_SETTINGS:
            setattr(self, name, position.get(name, getattr(self, name)))  # early checkpoints have some of them only
        self._shapes.load_state_dict(position.get("shapes", {}))  # early checkpoints have none
        self._watch.load_state_dict(position.get("watch", {}))

    def __getstate__(self) -> dict[str, Any]:
        self._check_at_rest("copying or pickling")
        own = {k: v for k, v in self.__dict__.items() if k in (*_OWN_SETTINGS, "_shapes")}
        base = super().__getstate__()
        if not isinstance(base["defaults"]["std_init"], int | float):
            # A function may not be picklable, and tensors were for the groups of then: a new group brings its own.
            base["defaults"] = base["defaults"] | {"std_init": None}
        return {**base, **own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._idle()

    # --- checks

    def _check_at_rest(self, what: str) -> None:
        self._check_no_samples(what)
        if self._inside_sampled:
            raise RuntimeError(f"{what} inside sampled(): the weights are a draw, not the mean")

    def _check_no_samples(self, what: str) -> None:
        if self._pending is not None:
            raise RuntimeError(f"{what} while samples of draw() are pending: finish with step(), or discard()")

    def _check_batch_size(self, batch_size: int | None) -> None:
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        if batch_size is not None and self.reduction == "sum":
            raise ValueError(
                'batch_size goes with BGD(..., reduction="mean"): a loss that is summed over the batch needs none'
            )
        if self.reduction == "mean" and batch_size is None:
            raise ValueError(
                'reduction="mean" needs step(..., batch_size=len(x)): the update is defined for the summed loss'
            )

    def _name(self, p: Tensor) -> str:
        for group in self.param_groups:
            for i, member in enumerate(group["params"]):
                if member is p:
                    names = group.get("param_names")
                    return f"{names[i]!r} {tuple(p.shape)}" if names else f"a parameter of shape {tuple(p.shape)}"
        return "a parameter"


_Prior = dict[Tensor, tuple[Tensor, Tensor]]

_OWN_SETTINGS = (
    "mc_samples",
    "reduction",
    "antithetic",
    "noise",
    "implicit_iterations",
    "implicit_tolerance",
    "implicit_damping",
    "nonfinite",
    "seed",
    "steps",
    "draws",
    "skipped_steps",
)


def _averages_gradients(models: Iterable[nn.Module], params: Iterable[Tensor]) -> bool:
    ours = set(params)
    wrappers = (m for model in models for m in model.modules() if isinstance(m, DistributedDataParallel))
    sharing = (m for m in wrappers if torch.distributed.get_world_size(m.process_group) > 1)
    return any(p in ours for m in sharing for p in m.parameters())
