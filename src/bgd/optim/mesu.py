"""MESU: a Gaussian posterior that forgets what is older than a window (Bonnet et al., 2025)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from torch import Tensor

from bgd.optim.base import Params
from bgd.optim.relatives import Group, Relative, State
from bgd.optim.update import Gaussian
from bgd.optim.validation import DECAY, POSITIVE, Rule, StdInit
from bgd.optim.window import keep_prior_means


class MESU(Relative):
    r"""BGD to first order, with every weight drawn back to its prior: a window of N examples.

    With the prior's mean and std, those that a weight began with, and n examples in the batch,

    .. math::
        \mu &\leftarrow \mu - \eta \sigma^2 E[g] + \frac{n}{N} \frac{\sigma^2}{\sigma_0^2} (\mu_0 - \mu), \\
        \sigma &\leftarrow \sigma - \frac{\sigma^2}{2} E[g \varepsilon]
            + \frac{n}{N} \frac{\sigma (\sigma_0^2 - \sigma^2)}{2 \sigma_0^2}.

    As N grows this is BGD's update to first order in std E[g eps]. Without data a std returns to the prior's. The first
    order may leap below 0 where std E[g eps] is above 2: ``std_shrink`` bounds a step. ``BGD(..., memory=N)`` has the
    same window in closed form, and leaps nowhere.

    Args:
        params: as for any torch optimizer; groups may have their own ``lr``, ``std_init``, ``std_min``, ``std_max``,
            ``memory`` and ``std_shrink``.
        memory: N, the window in examples.
        lr: scales the step of the mean; 1 in the paper.
        std_init: std before any data, as for :class:`bgd.BGD`: the prior's.
        std_min: floor of the std.
        std_max: ceiling of the std: a number, ``"init"``, or None as in the paper.
        std_shrink: no step makes a std smaller than this fraction of itself.
        **settings: of every posterior: ``mc_samples``, ``estimator``, ``reduction``, ``antithetic``, ``noise``,
            ``seed``, ``generator``, ``nonfinite``, as for :class:`bgd.BGD`.

    >>> import torch
    >>> model = torch.nn.Linear(3, 2)
    >>> optimizer = MESU(model.parameters(), memory=10_000)
    >>> torch.nn.functional.cross_entropy(model(torch.ones(8, 3)), torch.ones(8, dtype=torch.int64)).backward()
    >>> optimizer.step()
    """

    rules: ClassVar[dict[str, Rule]] = {"memory": POSITIVE, "std_shrink": DECAY}
    counts_examples = True

    def __init__(
        self,
        params: Params,
        *,
        memory: float = 100_000.0,
        lr: float = 1.0,
        std_init: StdInit | None = None,
        std_min: float | None = None,
        std_max: float | Literal["init"] | None = "init",
        std_shrink: float = 0.1,
        **settings: Any,
    ) -> None:
        defaults = {"lr": lr, "std_init": std_init, "std_min": std_min, "std_max": std_max}
        super().__init__(params, {**defaults, "memory": memory, "std_shrink": std_shrink}, **settings)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with settings of their own where given."""
        super().add_param_group(param_group)
        keep_prior_means(self.state, self.param_groups[-1])

    def next_posterior(
        self, old: Gaussian, e_g: Tensor, e_g_eps: Tensor, examples: int, group: Group, state: State
    ) -> tuple[Gaussian, State]:
        """One step of the two equations."""
        prior_std: float | Tensor = state["std_init"] if "std_init" in state else group["std_init"]
        windows, ratio = examples / group["memory"], (old.std / prior_std).square()
        pull = (windows * ratio).clamp(max=1.0)  # no further than the prior
        mean = old.mean - group["lr"] * old.std.square() * e_g + pull * (state["prior_mean"] - old.mean)
        factor = 1 - old.std * e_g_eps / 2 + windows * (1 - ratio) / 2
        return Gaussian(mean, old.std * factor.clamp(min=group["std_shrink"])), {}
