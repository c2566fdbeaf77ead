"""Variational continual learning (Nguyen et al., 2018)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import nn

from bgd.methods.common.outputs import Outputs
from bgd.methods.common.variational import MeanField, Sampling, Variational, check_train_size
from bgd.scenarios.types import Batch, Knowledge


class VCL(Variational):
    """Minimises mean_b E_q[loss] + KL(q || p) / N_t; when task t ends, p <- q: the posterior is the next prior.

    A weight that no data has spoken to yet (the head of a task still to come; a pixel that was always 0) has
    learnt nothing: it stays out of the KL term and keeps the initial prior until its first gradient. So each
    head starts afresh with its own task, as in the multi-head networks of Nguyen et al.

    Args:
        net: any module that maps (B, ...) to scores (B, outputs).
        outputs: which outputs the loss runs over.
        train_size: N_t, the number of training samples of a task, or one number for each task.
        lr: Adam's learning rate, for means and log stds.
        std_init: the std of every weight at the start; 0.05 is a log variance of -6.
        prior_std: the std of the first prior, centred at 0.
        train_samples: draws per step.
        test_samples: draws that ``predict`` averages the probabilities of; 0 for the mean network alone.
        sampling: "weights" (any net) or "local" (linear layers; less noise, about the same cost).
        seed: of the draws.

    >>> from bgd.scenarios.heads import Heads
    >>> VCL(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),))), train_size=1000).needs.name
    'BOUNDARIES'
    """

    needs = Knowledge.BOUNDARIES
    train_size_per_task = True
    state_attributes: ClassVar[tuple[str, ...]] = ("posterior", "generator", "used", "ended")

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        train_size: int | list[int] | tuple[int, ...] | None = None,
        lr: float = 0.001,
        std_init: float = 0.05,
        prior_std: float = 1.0,
        train_samples: int = 1,
        test_samples: int = 0,
        sampling: Sampling = "weights",
        seed: int = 0,
    ) -> None:
        self.train_size = check_train_size(train_size, "VCL")
        super().__init__(
            net,
            outputs,
            MeanField(net, std_init, prior_std),
            lr=lr,
            train_samples=train_samples,
            test_samples=test_samples,
            sampling=sampling,
            seed=seed,
        )
        self.used = {n: torch.zeros_like(p, dtype=torch.bool) for n, p in self.posterior.mean.items()}
        self.ended = 0  # tasks

    def kl_weight(self) -> float:
        """1 / N_t."""
        return 1 / self.train_size[min(self.ended, len(self.train_size) - 1)]

    @torch.no_grad()
    def before_step(self, batch: Batch) -> None:  # noqa: ARG002
        """Note the weights that the data speaks to, and add the gradient of their KL term."""
        for name, p in self.posterior.mean.items():
            if p.grad is not None:
                self.used[name] |= p.grad != 0
        self.posterior.add_kl_gradient(self.kl_weight(), among=self.used)

    def end_task(self, batches: Iterable[Batch] = ()) -> None:
        """Make the posterior the prior, for the weights that have been used."""
        self.posterior.become_prior(self.used)
        self.ended += 1
        super().end_task(batches)
