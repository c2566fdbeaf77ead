"""BAdam: BGD's stds with Adam's step of the means (Foster and Brintrup, 2023)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from torch import Tensor

from bgd.optim.base import Params
from bgd.optim.relatives import Group, Relative, State, faded
from bgd.optim.update import Gaussian, shrink_factor
from bgd.optim.validation import DECAY, POSITIVE, Rule, StdInit


class BAdam(Relative):
    r"""Adam, with a step size of each weight's own, its variance: weights that are known move little.

    .. math::
        \mu \leftarrow \mu - \eta \sigma^2 \hat m / (\sqrt{\hat v} + c), \qquad
        \sigma \leftarrow \sigma \exp(-\operatorname{asinh}(\sigma E[g \varepsilon] / 2)),

    with m and v the moving averages of E[g] and its square, without their start-up bias. The mean's step does not
    depend on the scale of the loss, that of the std does, as in BGD.

    Args:
        params: as for any torch optimizer; groups may have their own ``lr``, ``std_init``, ``std_min``, ``std_max``,
            ``beta1``, ``beta2`` and ``damping``.
        lr: eta: Adam's step size is ``lr * std^2``.
        std_init: std before any data, as for :class:`bgd.BGD`.
        beta1: decay of m.
        beta2: decay of v.
        damping: c.
        std_min: floor of the std.
        std_max: ceiling of the std: a number, ``"init"``, or None as in the paper.
        **settings: of every posterior: ``mc_samples``, ``estimator``, ``reduction``, ``antithetic``, ``noise``,
            ``seed``, ``generator``, ``nonfinite``, as for :class:`bgd.BGD`.

    >>> import torch
    >>> model = torch.nn.Linear(3, 2)
    >>> optimizer = BAdam(model.parameters())
    >>> torch.nn.functional.cross_entropy(model(torch.ones(8, 3)), torch.ones(8, dtype=torch.int64)).backward()
    >>> optimizer.step()
    """

    rules: ClassVar[dict[str, Rule]] = {"beta1": DECAY, "beta2": DECAY, "damping": POSITIVE}
    beside = ("momentum", "momentum_weight", "square", "square_weight")

    def __init__(
        self,
        params: Params,
        *,
        lr: float = 1.0,
        std_init: StdInit | None = None,
        beta1: float = 0.9,
        beta2: float = 0.999,
        damping: float = 1e-8,
        std_min: float | None = None,
        std_max: float | Literal["init"] | None = "init",
        **settings: Any,
    ) -> None:
        defaults = {"lr": lr, "std_init": std_init, "std_min": std_min, "std_max": std_max}
        super().__init__(params, {**defaults, "beta1": beta1, "beta2": beta2, "damping": damping}, **settings)

    def next_posterior(
        self, old: Gaussian, e_g: Tensor, e_g_eps: Tensor, examples: int, group: Group, state: State
    ) -> tuple[Gaussian, State]:
        """One step of both lines."""
        del examples
        momentum, m_weight = faded(state["momentum"], state["momentum_weight"], e_g, group["beta1"])
        square, v_weight = faded(state["square"], state["square_weight"], e_g.square(), group["beta2"])
        step = (momentum / m_weight) / ((square / v_weight).sqrt() + group["damping"])
        new = Gaussian(old.mean - group["lr"] * old.std.square() * step, old.std * shrink_factor(old.std * e_g_eps))
        beside = {"momentum": momentum, "momentum_weight": m_weight, "square": square, "square_weight": v_weight}
        return new, beside
