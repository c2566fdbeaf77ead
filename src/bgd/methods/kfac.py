"""K-FAC (Martens & Grosse, 2015), and KFC for convolutions (Grosse & Martens, 2016)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from bgd.methods.common.base import Base, trainable_parameters
from bgd.methods.common.likelihoods import Label, check_label
from bgd.methods.common.outputs import Outputs
from bgd.methods.curvature.natural_gradient import KLClip, NaturalGradient
from bgd.scenarios.types import Batch
from bgd.validation import check_numbers


class KFAC(Base):
    """Natural gradient descent, W <- W - lr G^-1 (dloss/dW) A^-1, with a Kronecker-factored Fisher for each layer.

    A = E[a a^T] from the inputs of the layer and G = E[g g^T] from the gradients at its outputs are moving averages,
    damped by gamma as (A + pi sqrt(gamma)) x (G + sqrt(gamma) / pi): see :class:`.NaturalGradient`. The
    labels of G are sampled from the model, as Fisher information requires. For BatchNorm the Fisher is diagonal.

    Args:
        net: of linear and convolution layers, and BatchNorm.
        lr: step size.
        momentum: of the preconditioned gradients.
        damping: gamma.
        weight_decay: the gradient of weight_decay / 2 |theta|^2 is added before it is preconditioned.
        kl_clip: the bound on lr^2 g^T F^-1 g, above which a step is scaled down; None for no bound.
        kl_clip_decay: the bound's factor per iteration: 0.95 ** (1 / 390) is Zhang et al.'s 0.95 per epoch of CIFAR10.
        decay: of the moving averages.
        stats_every: iterations between updates of the factors.
        inverse_every: iterations between inversions.
        fisher_label: the labels of G: "sampled", or "true", "predicted", "exact".
        seed: of the sampled labels.

    >>> from bgd.scenarios.heads import Heads
    >>> learner = KFAC(nn.Linear(4, 2), Outputs(Heads(2, ((0, 1),))))
    >>> learner.observe(torch.ones(8, 4), torch.ones(8, dtype=torch.int64)) > 0
    True
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("natural_gradient",)

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        lr: float = 0.01,
        momentum: float = 0.9,
        damping: float = 0.001,
        weight_decay: float = 0.0,
        kl_clip: float | None = 0.001,
        kl_clip_decay: float = 1.0,
        decay: float = 0.99,
        stats_every: int = 10,
        inverse_every: int = 200,
        fisher_label: Label = "sampled",
        seed: int = 0,
    ) -> None:
        check_numbers(weight_decay=weight_decay)
        check_label(fisher_label, outputs.likelihood)
        self.clip = KLClip(kl_clip, kl_clip_decay)
        self.natural_gradient = NaturalGradient(
            net,
            damping=damping,
            decay=decay,
            stats_every=stats_every,
            inverse_every=inverse_every,
            label=fisher_label,
            seed=seed,
        )
        super().__init__(net, outputs, torch.optim.SGD(net.parameters(), lr=lr, momentum=momentum))
        self.weight_decay = weight_decay

    def loss(self, x: Tensor, y: Tensor, task: int | Tensor | None) -> Tensor:
        """The mean loss of a batch; its Kronecker factors are recorded in the same pass."""
        return self.natural_gradient.loss(self, lambda: self.scores(x), y, task)

    @torch.no_grad()
    def before_step(self, batch: Batch) -> None:  # noqa: ARG002
        """Precondition the gradients, and clip them."""
        self.natural_gradient.update(self.iteration)
        if self.weight_decay:
            for p in trainable_parameters(self.net).values():
                if p.grad is not None:
                    p.grad.add_(p, alpha=self.weight_decay)
        self.clip.apply(self.optimizer, self.natural_gradient.precondition(), self.iteration)
