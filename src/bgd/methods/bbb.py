"""Bayes by backprop (Blundell et al., 2015)."""

from __future__ import annotations

from torch import nn

from bgd.methods.common.mean_field import MeanField
from bgd.methods.common.outputs import Outputs
from bgd.methods.common.train_size import check_train_size
from bgd.methods.common.variational import Sampling, Variational
from bgd.validation import check_numbers


class BBB(Variational):
    """Minimises mean_b E_q[loss] + kl_weight KL(q || p) / N: a Gaussian q per weight, a fixed Gaussian prior p.

    Args:
        train_size: N, the number of training samples.
        lr: Adam's learning rate, for means and log stds.
        std_init: the std of every weight at the start.
        prior_std: the std of a prior centred at 0; None: the prior is the initial posterior, the same as
            BGD's.
        kl_weight: 1 for Bayes' rule; 0.1 is the relaxed version of Zhang et al. (2018).
        train_samples: weight samples per step.
        test_samples: networks whose probabilities ``predict`` averages; 0 for the mean network alone.
        sampling: "weights" (any net) or "local" (linear layers; less noise, about the same cost).
        seed: of the samples.

    >>> from bgd.scenarios.heads import Heads
    >>> BBB(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),))), train_size=1000).needs.name
    'NOTHING'
    """

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        train_size: int | None = None,
        lr: float = 0.001,
        std_init: float = 0.05,
        prior_std: float | None = None,
        kl_weight: float = 1.0,
        train_samples: int = 1,
        test_samples: int = 0,
        sampling: Sampling = "weights",
        seed: int = 0,
    ) -> None:
        (self.train_size,) = check_train_size(train_size, "BBB", one=True)
        check_numbers(kl_weight=kl_weight)
        self._kl_weight = kl_weight
        samples = {"train_samples": train_samples, "test_samples": test_samples, "seed": seed}
        super().__init__(net, outputs, MeanField(net, std_init, prior_std), lr=lr, sampling=sampling, **samples)

    def kl_weight(self) -> float:
        """kl_weight / N."""
        return self._kl_weight / self.train_size
