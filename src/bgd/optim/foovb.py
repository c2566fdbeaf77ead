"""FOO-VB, matrix-variate: a posterior whose covariance is a Kronecker product (Zeno et al., 2021)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from bgd.optim.base import Params
from bgd.optim.checkpoint import one_of
from bgd.optim.estimators.base import Expectations, Step
from bgd.optim.estimators.batched import BatchedStep, Objective
from bgd.optim.estimators.gradient_sums import GradientSums
from bgd.optim.noise import NoiseKind
from bgd.optim.overflow import overflown
from bgd.optim.stepping import EstimatorOptimizer
from bgd.optim.update import Gaussian, std_bounds, update_mean, update_std
from bgd.optim.validation import StdInit
from bgd.validation import check_choice

Root = Literal["nearest", "contracting"]
ROOTS: tuple[Root, ...] = ("nearest", "contracting")


def solve_factor(g: Tensor, root: Root = "nearest") -> Tensor:
    r"""A solution Y of :math:`Y Y^T + G Y^T = I`.

    With :math:`L = (I + G G^T / 4)^{1/2}` and the singular values of :math:`L^{-1} G = S \Lambda W^T`, any signs D on a
    diagonal give one, :math:`Y = L S D W^T - G / 2`. For X = A Y, V = A A^T and G = A^T E it solves the paper's
    X X^T + V E X^T = V.

    Args:
        g: G, a square matrix.
        root: ``"nearest"`` to the identity, which grows where G is negative, as a std of BGD does; or
            ``"contracting"``, D = I, which shrinks whatever the sign.

    >>> [round(solve_factor(torch.tensor([[1.0]]), root).item(), 4) for root in ROOTS]
    [0.618, 0.618]
    >>> [round(solve_factor(torch.tensor([[-1.0]]), root).abs().item(), 4) for root in ROOTS]
    [1.618, 0.618]
    """
    values, vectors = torch.linalg.eigh(torch.eye(len(g), dtype=g.dtype, device=g.device) + g @ g.T / 4)
    scale = values.clamp(min=1.0).sqrt()
    left, _, right = torch.linalg.svd((vectors / scale) @ vectors.T @ g)
    turn = left
    if root == "nearest":
        turn = left * torch.where((left * right.T).sum(0) < 0, -1.0, 1.0)
    solution: Tensor = (vectors * scale) @ vectors.T @ (turn @ right) - g / 2
    return solution


@dataclass
class KroneckerSums(GradientSums):
    """Sums over sampled networks of g^T d and g d^T too, for matrices with the deviation d = weight - mean."""

    stds: list[Tensor] = field(default_factory=list)
    inner: dict[int, Tensor] = field(default_factory=dict)
    outer: dict[int, Tensor] = field(default_factory=dict)

    def add(self, eps: Sequence[Tensor], loss: Tensor | float | None) -> None:
        """Add the gradients of one sampled network, and its loss where it is known."""
        super().add(eps, loss)
        for i, (p, std) in enumerate(zip(self.params, self.stds, strict=True)):
            if p.dim() == 2 and p.grad is not None:
                g, deviation = p.grad.double(), (std * eps[i]).double()
                self.inner[i] = self.inner.get(i, 0) + g.T @ deviation
                self.outer[i] = self.outer.get(i, 0) + g @ deviation.T


class FOOVB(EstimatorOptimizer):
    r"""For each weight matrix W = M + B Phi A^T with standard normal Phi: weights of a row, and of a column, covary.

    With Psi the gradient of the summed loss, P rows and N columns,

    .. math::
        M \leftarrow M - \eta B B^T E[\Psi] A A^T, \qquad
        E_A = E[\Psi^T B \Phi] / P, \qquad E_B = E[\Psi A \Phi^T] / N,

    and each factor becomes the solution X of :math:`X X^T + V E X^T = V`, V = A A^T or B B^T (:func:`solve_factor`).
    Parameters of other than two dimensions, such as biases, have BGD's diagonal posterior. A step decomposes matrices
    of the sizes P and N, in double precision: meant for small layers. It has sampled networks only, one after another,
    since noise of its own for each example has no Kronecker form. The more of them, the better: the paper takes 2,500.

    Args:
        params: as for any torch optimizer; groups may have their own ``lr`` and ``std_init``.
        std_init: std before any data, one number for each parameter, as for :class:`bgd.BGD`.
        lr: eta.
        mc_samples: K, sampled networks per step.
        root: ``"nearest"`` to the old factor shrinks and grows, as BGD's stds do. ``"contracting"`` is what the
            authors' solver takes: it cannot blow up, but noise alone shrinks the covariance, until, with few samples,
            nothing more is learned.
        reduction: ``"mean"`` needs ``step(closure, batch_size=...)``, ``"sum"`` does not.
        antithetic: draw networks in pairs.
        noise: see :mod:`bgd.optim.noise`.
        seed: of the noise.
        generator: to draw the seed from.
        nonfinite: ``"raise"`` or ``"skip"``.

    >>> model = nn.Linear(3, 2)
    >>> optimizer = FOOVB(model.parameters(), mc_samples=4)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = model(torch.ones(8, 3)).square().mean()
    ...     loss.backward()
    ...     return loss
    >>> loss = optimizer.step(closure, batch_size=8)
    >>> optimizer.state[model.weight]["inner"].shape
    torch.Size([3, 3])
    """

    own_settings = (*EstimatorOptimizer.own_settings, "root")
    checks: ClassVar[dict[str, Any]] = EstimatorOptimizer.checks | {
        "root": one_of(ROOTS),
        "estimator": one_of(("shared",)),
    }

    def __init__(
        self,
        params: Params,
        *,
        std_init: StdInit | None = None,
        lr: float = 1.0,
        mc_samples: int = 10,
        root: Root = "nearest",
        reduction: Literal["sum", "mean"] = "mean",
        antithetic: bool = False,
        noise: NoiseKind | None = None,
        seed: int | None = None,
        generator: torch.Generator | None = None,
        nonfinite: Literal["raise", "skip"] = "raise",
    ) -> None:
        check_choice("root", root, ROOTS)
        self.root: Root = root
        super().__init__(
            params,
            {"lr": lr, "std_init": std_init, "std_min": None, "std_max": None},
            mc_samples=mc_samples,
            estimator="shared",
            reduction=reduction,
            antithetic=antithetic,
            noise=noise,
            seed=seed,
            generator=generator,
            nonfinite=nonfinite,
        )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with settings of their own where given."""
        if bounds := [name for name in ("std_min", "std_max") if param_group.get(name) is not None]:
            raise ValueError(f"{bounds[0]} is not supported: a Kronecker product has no std of each weight to bound")
        super().add_param_group(param_group)
        for p in self.param_groups[-1]["params"]:
            std = self.state[p]["std"]
            if p.dim() == 2 and p.numel():
                if not bool((std == std[0, 0]).all()):
                    raise ValueError(f"std_init must be one number for {self.name_of(p)}")
                for name, size in (("inner", p.shape[1]), ("outer", p.shape[0])):
                    self.state[p][name] = torch.eye(size, dtype=std.dtype, device=std.device) * std[0, 0].sqrt()

    def batched(
        self, model: nn.Module, objective: Objective, *, chunk_size: int | None = None, compile: bool | None = None
    ) -> BatchedStep:
        """Refused: its networks are evaluated one after the other."""
        del model, objective, chunk_size, compile
        raise ValueError("FOOVB has no batched step: use step(closure)")

    def _noise(self, params: list[Tensor], keys: Sequence[int]) -> list[Tensor]:
        return self._correlated(params, super()._noise(params, keys))

    def _posterior_noise(self, params: list[Tensor], count: int) -> list[Tensor]:
        return self._correlated(params, super()._posterior_noise(params, count))

    def _correlated(self, params: list[Tensor], phi: list[Tensor]) -> list[Tensor]:
        """B Phi A^T in units of each weight's std, so that mean + std * noise is a sample."""
        states = [self.state[p] for p in params]
        return [
            (s["outer"] @ e @ s["inner"].T) / s["std"] if "inner" in s else e for s, e in zip(states, phi, strict=True)
        ]

    def _begin_step(self, samples_in_weights: bool = True) -> Step:
        step = super()._begin_step(samples_in_weights)
        step.new_sums = lambda: KroneckerSums(step.params, *self._sum_buffers.zeros(step.stds), stds=step.stds)
        return step

    @torch.no_grad()
    def _update(self, step: Step, estimate: Callable[[], Expectations]) -> Expectations:
        expectations, sums, groups = estimate(), step.sums, self._groups()
        if not isinstance(sums, KroneckerSums) or not sums.count:
            raise RuntimeError("FOOVB needs sampled networks: use step(closure)")
        found: list[tuple[Gaussian, dict[str, Tensor]]] = []
        for i, (p, mean, std, (g, g_eps)) in enumerate(
            zip(step.params, step.means, step.stds, expectations.scaled(step.stds), strict=True)
        ):
            lr = groups[p]["lr"]
            if g is None or g_eps is None:
                found.append((Gaussian(mean, std), {}))
            elif i in sums.inner:
                scaled = sums.inner[i] * expectations.scale, sums.outer[i] * expectations.scale
                if not all(bool(part.isfinite().all()) for part in scaled):
                    self._refuse(step, expectations, [i], "NaN or infinite covariance")
                found.append(self._next_matrix(mean, g, *scaled, lr, self.state[p]))
            else:
                found.append((Gaussian(update_mean(mean, std, g, lr), update_std(std, g_eps)), {}))
        if wrong := overflown(step.params, [new for new, _ in found]):
            self._refuse(step, expectations, wrong, "the step leads to a NaN or infinite mean")
        for p, mean, std, (new, factors) in zip(step.params, step.means, step.stds, found, strict=True):
            mean.copy_(new.mean)
            std.copy_(new.std)
            for name, factor in factors.items():
                self.state[p][name].copy_(factor)
        return expectations

    def _next_matrix(
        self, mean: Tensor, g: Tensor, inner: Tensor, outer: Tensor, lr: float, state: dict[str, Any]
    ) -> tuple[Gaussian, dict[str, Tensor]]:
        """The posterior of a matrix from E[g], E[g^T d] and E[g d^T]; d = B Phi A^T gives E_A = E[g^T d] A^-T / P."""
        rows, columns = mean.shape
        a, b = state["inner"].double(), state["outer"].double()
        e_a = torch.linalg.solve(a, inner.T).T / rows
        e_b = torch.linalg.solve(b, outer.T).T / columns
        moved = mean - lr * (b @ b.T @ g.double() @ (a @ a.T)).to(mean.dtype)
        a, b = a @ solve_factor(a.T @ e_a, self.root), b @ solve_factor(b.T @ e_b, self.root)
        std = (b.norm(dim=1).unsqueeze(1) * a.norm(dim=1)).to(mean.dtype).clamp(*std_bounds(mean.dtype))
        return Gaussian(moved, std), {"inner": a, "outer": b}
