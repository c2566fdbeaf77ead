"""Noisy K-FAC (Zhang, Sun, Duvenaud & Grosse, 2018, Algorithm 2)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from bgd.methods.common.likelihoods import Label, check_label
from bgd.methods.common.outputs import Outputs
from bgd.methods.common.penalty import Weights
from bgd.methods.curvature.blocks import Kronecker
from bgd.methods.curvature.layers import from_matrix, to_matrix
from bgd.methods.curvature.natural_gradient import KLClip, NaturalGradient
from bgd.methods.curvature.noisy import TRAINING, Noisy, Prior, standard_normals
from bgd.scenarios.types import Batch


class NoisyKFAC(Noisy):
    """A matrix-variate Gaussian for each layer, its covariance an inverse Kronecker-factored Fisher: K-FAC with noise.

    With gamma_in = lambda / (N eta), gamma = gamma_in + gamma_ex, l the mean log-likelihood of the batch, and A^gamma,
    G^gamma the damped factors A + pi sqrt(gamma), G + sqrt(gamma) / pi of :class:`.NaturalGradient`,

        W  ~ MN(M, lambda / N (A^gamma_in)^-1, (G^gamma_in)^-1)
        V  = dl/dW - gamma_in W
        M <- M + lr (G^gamma)^-1 V (A^gamma)^-1

    with momentum and clipping as in K-FAC. There is no noise before the first inversion at iteration
    ``inverse_every`` (their code has a std of 1e-6 until then): with the factors of few batches most
    directions would have the variance of the prior. At lambda = 0 it is K-FAC, bit for bit.

    Args:
        net: of linear and convolution layers, and BatchNorm (which has neither noise nor prior).
        train_size: N, the number of training samples.
        lr: step size, the paper's alpha.
        momentum: of the preconditioned gradients.
        kl_weight: lambda, the weight of KL(q || prior): 1 for Bayes' rule, 0 for no noise and no prior.
        prior_variance: eta, of the prior N(0, eta) of every weight.
        damping: gamma_ex, which damps the step, but not the noise.
        kl_clip: the bound on lr^2 g^T F^-1 g, above which a step is scaled down; None for no bound.
        kl_clip_decay: the bound's factor per iteration: 0.95 ** (1 / 390) is the authors' 0.95 per epoch of CIFAR10.
        decay: of the moving averages.
        stats_every: T_stats, iterations between updates of the factors.
        inverse_every: T_inv, iterations between inversions.
        fisher_label: the labels of G: "sampled", or "true", "predicted", "exact".
        test_samples: networks whose probabilities ``predict`` averages; 0 for the mean network alone.
        seed: of the samples.

    >>> from bgd.scenarios.heads import Heads
    >>> learner = NoisyKFAC(nn.Linear(4, 2), Outputs(Heads(2, ((0, 1),))), train_size=100, inverse_every=1)
    >>> learner.observe(torch.ones(8, 4), torch.ones(8, dtype=torch.int64)) > 0
    True
    >>> learner.std()["bias"].shape
    torch.Size([2])
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("natural_gradient",)

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        train_size: int | None = None,
        lr: float = 0.01,
        momentum: float = 0.9,
        kl_weight: float = 1.0,
        prior_variance: float = 0.1,
        damping: float = 0.001,
        kl_clip: float | None = 0.001,
        kl_clip_decay: float = 1.0,
        decay: float = 0.99,
        stats_every: int = 10,
        inverse_every: int = 200,
        fisher_label: Label = "sampled",
        test_samples: int = 0,
        seed: int = 0,
    ) -> None:
        check_label(fisher_label, outputs.likelihood)
        prior = Prior(train_size, kl_weight, prior_variance, damping)
        optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=momentum)
        super().__init__(net, outputs, optimizer, prior, test_samples, seed)
        self.clip = KLClip(kl_clip, kl_clip_decay)
        self.natural_gradient = NaturalGradient(
            net,
            damping=self.damping,
            noise_damping=self.intrinsic_damping if self.temperature else None,
            decay=decay,
            stats_every=stats_every,
            inverse_every=inverse_every,
            label=fisher_label,
            seed=seed,
        )

    def loss(self, x: Tensor, y: Tensor, task: int | Tensor | None) -> Tensor:
        """The loss at one sample of the weights; its Kronecker factors are recorded in the same pass."""
        self.current_offset = self.sample_offset(self.seed, TRAINING, self.iteration)
        return self.natural_gradient.loss(self, lambda: self.scores_at(self.current_offset, x), y, task)

    @torch.no_grad()
    def sample_offset(self, *key: int) -> Weights:
        """sqrt(lambda / N) R_G noise R_A^T, with R R^T the inverses of the damped factors."""
        noise = standard_normals({name: to_matrix(self.natural_gradient.layers[name]) for name in self._roots()}, *key)
        return self._by_parameter(
            {n: root.times(noise[n]).mul_(self.temperature**0.5) for n, root in self._roots().items()}
        )

    @torch.no_grad()
    def std(self) -> Weights:
        """The marginal std of each weight; 0 before there is noise."""
        stds = {
            name: (self.temperature * torch.outer(root.g.square().sum(dim=1), root.a.square().sum(dim=0))).sqrt_()
            for name, root in self._roots().items()
        }
        return {name: torch.zeros_like(p) for name, p in self.noisy_parameters.items()} | self._by_parameter(stds)

    @torch.no_grad()
    def before_step(self, batch: Batch) -> None:  # noqa: ARG002
        """Precondition the gradients of loss and prior, and clip them."""
        self.natural_gradient.update(self.iteration)
        self.add_prior()
        self.clip.apply(self.optimizer, self.natural_gradient.precondition(), self.iteration)

    def _roots(self) -> dict[str, Kronecker]:
        return {name: root for name, root in self.natural_gradient.root.items() if isinstance(root, Kronecker)}

    def _by_parameter(self, matrices: dict[str, Tensor]) -> Weights:
        """Matrices of layers as tensors of parameters, by their names and in their shapes."""
        named: Weights = {}
        for name, matrix in matrices.items():
            layer = self.natural_gradient.layers[name]
            names = [f"{name}.{kind}" if name else kind for kind, _ in layer.named_parameters(recurse=False)]
            named.update(zip(names, from_matrix(layer, matrix), strict=True))
        return named
