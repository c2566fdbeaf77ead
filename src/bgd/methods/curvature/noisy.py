"""Weight noise whose covariance is an inverse Fisher: what Noisy Adam and Noisy K-FAC share (Zhang et al., 2018)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _NormBase

from bgd.methods.common.base import trainable_parameters
from bgd.methods.common.outputs import Outputs, check_outputs
from bgd.methods.common.penalty import Weights
from bgd.methods.common.posterior import PosteriorLearner
from bgd.methods.common.train_size import check_train_size
from bgd.methods.common.types import MethodError
from bgd.optim.noise import fold, normal
from bgd.validation import check_numbers, check_whole

TRAINING, TESTING = 0, 1  # separate the noise of the two
NORMALISATION = (_NormBase, nn.LayerNorm, nn.GroupNorm)


class Prior(NamedTuple):
    """What weighs the prior N(0, eta) against the data.

    Attributes:
        train_size: N, the number of training samples.
        kl_weight: lambda, the weight of KL(q || prior); 0 for no noise and no prior.
        variance: eta.
        damping: gamma_ex, which damps the step, but not the noise.
    """

    train_size: int | None
    kl_weight: float
    variance: float
    damping: float


class Noisy(PosteriorLearner):
    """Computes the gradient at one sample w ~ q of the weights per step: natural gradient ascent of the ELBO.

    With the Fisher information F of a *sample*, N samples and a prior N(0, eta), the posterior of mean mu is
    q = N(mu, lambda / N (F + gamma_in)^-1), gamma_in = lambda / (N eta): at lambda = 1 its precision is N F + 1 / eta.
    A method defines its approximation of F by ``sample_offset``, and how it updates mu. Scale and shift of
    normalisation layers have neither noise nor prior: a scale near 0 is no simpler than one near 1, and noise on it
    perturbs a whole channel.

    Args:
        optimizer: updates mu by what ``before_step`` leaves in ``p.grad``.
        prior: N, lambda, eta and gamma_ex.
        test_samples: networks whose probabilities ``predict`` averages; 0 for the mean network alone.
        seed: of the samples.
    """

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        optimizer: torch.optim.Optimizer,
        prior: Prior,
        test_samples: int,
        seed: int,
    ) -> None:
        train_size, kl_weight, prior_variance, damping = prior
        (self.train_size,) = check_train_size(train_size, type(self).__name__, one=True)
        check_numbers(kl_weight=kl_weight, damping=damping)
        check_whole(0, test_samples=test_samples)
        if not 0 < prior_variance < math.inf:
            raise MethodError(f"prior_variance={prior_variance}: must be a finite number above 0")
        if not kl_weight and not damping:
            raise MethodError("kl_weight=0 and damping=0: nothing keeps the step finite; set one of them above 0")
        super().__init__(net, outputs, optimizer)
        self.temperature = kl_weight / self.train_size
        """lambda / N."""
        self.intrinsic_damping = self.temperature / prior_variance
        """gamma_in."""
        self.damping = self.intrinsic_damping + damping
        """gamma = gamma_in + gamma_ex."""
        self.test_samples, self.seed = test_samples, seed
        self.parameters = trainable_parameters(net)
        normalising = {name for name, layer in net.named_modules() if isinstance(layer, NORMALISATION)}
        self.noisy_parameters = {n: p for n, p in self.parameters.items() if n.rpartition(".")[0] not in normalising}
        """The weights that have a posterior and a prior."""
        self.current_offset: Weights = {}  # w - mu of the current step

    def sample_offset(self, *key: int) -> Weights:
        """One sample of w - mu: a pure function of the key and of q. Weights that are not in it equal their mean."""
        raise NotImplementedError

    def loss(self, x: Tensor, y: Tensor, task: int | Tensor | None) -> Tensor:
        """The loss at one sample of the weights."""
        self.current_offset = self.sample_offset(self.seed, TRAINING, self.iteration) if self.temperature else {}
        return self.outputs.loss(self.scores_at(self.current_offset, x), y, task)

    def scores_at(self, offset: Weights, x: Tensor) -> Tensor:
        """The scores at mu + offset; their gradient is that of mu."""
        weights = {name: self.parameters[name] + off for name, off in offset.items()}
        scores: Tensor = functional_call(self.net, weights, (x,))
        check_outputs(self.net, scores, self.outputs.heads)
        return scores

    def sample_scores(self, x: Tensor, samples: int) -> Iterator[Tensor]:
        """From the current posterior; without noise, the mean network each time."""
        for k in range(samples):
            yield self.scores_at(self.sample_offset(self.seed, TESTING, k) if self.temperature else {}, x)

    @contextmanager
    def weights_at(self, offset: Weights) -> Iterator[None]:
        """Inside, the network's weights are mu + offset; after, mu, bit for bit."""
        mean = {name: self.parameters[name].detach().clone() for name in offset}
        try:
            with torch.no_grad():
                for name, off in offset.items():
                    self.parameters[name].add_(off)
            yield
        finally:
            with torch.no_grad():
                for name, value in mean.items():
                    self.parameters[name].copy_(value)

    @torch.no_grad()
    def add_prior(self) -> None:
        """Turn gradients g of the loss into g + gamma_in w, those of loss and prior at the sample w."""
        if not self.intrinsic_damping:
            return
        for name, p in self.noisy_parameters.items():
            if p.grad is not None:
                p.grad.add_(
                    p + self.current_offset[name] if name in self.current_offset else p, alpha=self.intrinsic_damping
                )


def standard_normals(like: Mapping[str, Tensor], *key: int) -> Weights:
    """Standard normal noise in the shapes of ``like``, as a pure function of the key.

    >>> weights = {"a": torch.zeros(2, 3), "b": torch.zeros(4)}
    >>> noise = standard_normals(weights, 7, 0)
    >>> noise["a"].shape, torch.equal(noise["b"], standard_normals(weights, 7, 0)["b"])
    (torch.Size([2, 3]), True)
    """
    return {
        name: normal(
            "torch", [fold(*key, i)], t.numel(), torch.empty(1, t.numel(), dtype=t.dtype, device=t.device)
        ).view(t.shape)
        for i, (name, t) in enumerate(like.items())
    }
