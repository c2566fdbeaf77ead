"""BONG, diagonal: one natural-gradient step per batch on the expected loss (Jones, Chang and Murphy, 2024)."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from bgd.optim.base import Params
from bgd.optim.checkpoint import one_of
from bgd.optim.relatives import Group, Relative, State
from bgd.optim.update import Gaussian
from bgd.optim.validation import NOT_NEGATIVE, StdInit
from bgd.validation import check_choice

Curvature = Literal["hessian", "fisher"]
CURVATURES: tuple[Curvature, ...] = ("hessian", "fisher")


class BONG(Relative):
    r"""The posterior's precision grows by the curvature of the batch, and the mean moves by the new variance.

    .. math::
        \sigma'^{-2} = \sigma^{-2} + E[h], \qquad \mu' = \mu - \eta \sigma'^2 E[g],

    and before the next batch, as a Kalman filter predicts, :math:`\mu \leftarrow \gamma \mu, \sigma^2 \leftarrow
    \gamma^2 \sigma^2 + Q`. Where the loss is quadratic this is Bayes' rule, exactly. E[h] is

    - ``curvature="hessian"``: E[g eps] / std, the expected Hessian (Price's theorem). Noise may make it negative: no
      std more than doubles in a step.
    - ``curvature="fisher"``: E[g]^2 / n, which is never above the sum of the squared gradients of the n examples, and
      equals it for a single one. It is never negative, and the posterior cannot blow up.

    Args:
        params: as for any torch optimizer; groups may have their own ``lr``, ``std_init``, ``std_min``, ``std_max``,
            ``decay`` and ``process_noise``.
        curvature: ``"hessian"`` or ``"fisher"``.
        lr: scales the step of the mean; 1 is Bayes' rule.
        std_init: std before any data, as for :class:`bgd.BGD`.
        std_min: floor of the std.
        std_max: ceiling of the std: a number, ``"init"``, or None.
        decay: gamma, once a step.
        process_noise: Q, the variance that a step adds.
        **settings: of every posterior: ``mc_samples``, ``estimator``, ``reduction``, ``antithetic``, ``noise``,
            ``seed``, ``generator``, ``nonfinite``, as for :class:`bgd.BGD`.

    >>> model = torch.nn.Linear(3, 2)
    >>> optimizer = BONG(model.parameters(), curvature="fisher")
    >>> torch.nn.functional.cross_entropy(model(torch.ones(8, 3)), torch.ones(8, dtype=torch.int64)).backward()
    >>> optimizer.step()
    >>> bool((optimizer.state[model.weight]["std"] < optimizer.state[model.weight]["std_init"]).all())
    True
    """

    own_settings = (*Relative.own_settings, "curvature")
    checks = Relative.checks | {"curvature": one_of(CURVATURES)}
    rules = dict.fromkeys(("decay", "process_noise"), NOT_NEGATIVE)

    def __init__(
        self,
        params: Params,
        *,
        curvature: Curvature = "hessian",
        lr: float = 1.0,
        std_init: StdInit | None = None,
        std_min: float | None = None,
        std_max: float | Literal["init"] | None = "init",
        decay: float = 1.0,
        process_noise: float = 0.0,
        **settings: Any,
    ) -> None:
        check_choice("curvature", curvature, CURVATURES)
        self.curvature: Curvature = curvature
        defaults = {"lr": lr, "std_init": std_init, "std_min": std_min, "std_max": std_max}
        super().__init__(params, {**defaults, "decay": decay, "process_noise": process_noise}, **settings)

    @property
    def counts_examples(self) -> bool:  # type: ignore[override]
        """Only the squared gradient of a batch needs their number."""
        return self.curvature == "fisher"

    def next_posterior(
        self, old: Gaussian, e_g: Tensor, e_g_eps: Tensor, examples: int, group: Group, state: State
    ) -> tuple[Gaussian, State]:
        """Update and predict."""
        del state
        if self.curvature == "hessian":
            growth = (1 + old.std * e_g_eps).clamp(min=0.25)  # of the precision
        else:
            growth = 1 + (old.std * e_g).square() / max(examples, 1)
        std = old.std / growth.sqrt()
        mean = old.mean - group["lr"] * std.square() * e_g
        decay, noise = group["decay"], group["process_noise"]
        if decay != 1.0:
            mean, std = decay * mean, decay * std
        return Gaussian(mean, torch.hypot(std, std.new_full((), noise**0.5)) if noise else std), {}
