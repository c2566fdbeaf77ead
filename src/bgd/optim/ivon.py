"""IVON: a variational online Newton method with Adam's habits (Shen et al., 2024)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from torch import Tensor

from bgd.optim.base import Params
from bgd.optim.relatives import Group, Relative, State, faded
from bgd.optim.update import Gaussian
from bgd.optim.validation import DECAY, NOT_NEGATIVE, POSITIVE, Rule, StdInit


class IVON(Relative):
    r"""A moving average of the Hessian, which stays positive by itself, gives the variance and scales the step.

    With n examples in the batch, :math:`f = E[g \varepsilon] / (n \sigma)`, the weight decay :math:`\delta` and
    :math:`\sigma^2 = 1 / (\lambda (h + \delta))`,

    .. math::
        m &\leftarrow \beta_1 m + (1 - \beta_1) E[g] / n, \\
        h &\leftarrow \beta_2 h + (1 - \beta_2) f + (1 - \beta_2)^2 (h - f)^2 / (2 (h + \delta)), \\
        \mu &\leftarrow \mu - \eta (m / (1 - \beta_1^t) + \delta \mu) / (h + \delta).

    Only the std is kept, since it holds h: in z = (1 - beta2) (lambda std (E[g eps] / n + delta std) - 1) the second
    line is std <- std / sqrt(1 + z + z^2 / 2).

    Args:
        params: as for any torch optimizer; groups may have their own ``lr``, ``std_init``, ``std_min``, ``std_max``,
            ``ess``, ``beta1``, ``beta2`` and ``weight_decay``.
        lr: eta.
        ess: lambda, the number of examples that the posterior is to stand for; of a data set, all.
        std_init: std before any data; it is the initial h, 1 / (lambda std^2) - delta.
        beta1: decay of the momentum.
        beta2: decay of h: the posterior remembers about 1 / (1 - beta2) batches.
        weight_decay: delta, the precision of the prior over lambda.
        std_min: floor of the std.
        std_max: ceiling of the std: a number, ``"init"``, or None as in the paper.
        **settings: of every posterior: ``mc_samples``, ``estimator``, ``reduction``, ``antithetic``, ``noise``,
            ``seed``, ``generator``, ``nonfinite``, as for :class:`bgd.BGD`.

    >>> import torch
    >>> model = torch.nn.Linear(3, 2)
    >>> optimizer = IVON(model.parameters(), ess=60_000)
    >>> torch.nn.functional.cross_entropy(model(torch.ones(8, 3)), torch.ones(8, dtype=torch.int64)).backward()
    >>> optimizer.step()
    """

    rules: ClassVar[dict[str, Rule]] = {"ess": POSITIVE, "beta1": DECAY, "beta2": DECAY, "weight_decay": NOT_NEGATIVE}
    beside = ("momentum", "momentum_weight")
    counts_examples = True

    def __init__(
        self,
        params: Params,
        *,
        lr: float = 0.1,
        ess: float = 10_000.0,
        std_init: StdInit = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.9999,
        weight_decay: float = 1e-4,
        std_min: float | None = None,
        std_max: float | Literal["init"] | None = None,
        **settings: Any,
    ) -> None:
        defaults = {"lr": lr, "std_init": std_init, "std_min": std_min, "std_max": std_max}
        betas = {"ess": ess, "beta1": beta1, "beta2": beta2, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, **betas}, **settings)

    def next_posterior(
        self, old: Gaussian, e_g: Tensor, e_g_eps: Tensor, examples: int, group: Group, state: State
    ) -> tuple[Gaussian, State]:
        """One step of the three equations."""
        ess, delta = group["ess"], group["weight_decay"]
        momentum, weight = faded(state["momentum"], state["momentum_weight"], e_g / examples, group["beta1"])
        z = (1 - group["beta2"]) * (ess * old.std * (e_g_eps / examples + delta * old.std) - 1)
        std = old.std / (1 + z + z.square() / 2).sqrt()
        mean = old.mean - group["lr"] * ess * std.square() * (momentum / weight + delta * old.mean)
        return Gaussian(mean, std), {"momentum": momentum, "momentum_weight": weight}
