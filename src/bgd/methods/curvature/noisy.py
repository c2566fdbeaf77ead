"""Weight noise whose covariance is an inverse Fisher: what Noisy Adam and Noisy K-FAC share (Zhang et al., 2018)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _NormBase

from bgd.methods.common.base import trainable
from bgd.methods.common.outputs import Outputs, check_outputs
from bgd.methods.common.penalty import Weights
from bgd.methods.common.types import MethodError
from bgd.methods.common.variational import Sampled, check_train_size
from bgd.optim.noise import fold, normal
from bgd.validation import check_numbers, check_whole

TRAINING, TESTING = 0, 1  # keep the noise of the two apart
NORMALISATION = (_NormBase, nn.LayerNorm, nn.GroupNorm)


class Noisy(Sampled):
    """Takes the gradient at one draw w ~ q of the weights a step: natural gradient ascent of the ELBO.

    With the Fisher information F of a *sample*, N samples and a prior N(0, eta), the posterior of mean mu is
    q = N(mu, lambda / N (F + gamma_in)^-1), gamma_in = lambda / (N eta): at lambda = 1 its precision is N F + 1 / eta.
    A method says what it takes for F, by ``offset``, and how it moves mu. Scale and shift of normalisation layers
    have neither noise nor prior: a scale near 0 is no simpler than one near 1, and noise on it shakes a whole channel.

    Args:
        net: any module that maps (B, ...) to scores (B, outputs).
        outputs: which outputs the loss runs over.
        optimizer: moves mu along what ``before_step`` leaves in ``p.grad``.
        train_size: N, the number of training samples.
        kl_weight: lambda, the weight of KL(q || prior); 0 for no noise and no prior.
        prior_variance: eta.
        damping: gamma_ex, which damps the step, but not the noise.
        test_samples: draws that ``predict`` averages the probabilities of; 0 for the mean network alone.
        seed: of the draws.
    """

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        optimizer: torch.optim.Optimizer,
        *,
        train_size: int | None,
        kl_weight: float,
        prior_variance: float,
        damping: float,
        test_samples: int,
        seed: int,
    ) -> None:
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
        self.intrinsic = self.temperature / prior_variance
        """gamma_in."""
        self.damping = self.intrinsic + damping
        """gamma = gamma_in + gamma_ex."""
        self.test_samples, self.seed = test_samples, seed
        self.parameters = trainable(net)
        normalising = {name for name, layer in net.named_modules() if isinstance(layer, NORMALISATION)}
        self.uncertain = {n: p for n, p in self.parameters.items() if n.rpartition(".")[0] not in normalising}
        """The weights that q and the prior speak of."""
        self.drawn: Weights = {}  # w - mu of the step under way

    def offset(self, *key: int) -> Weights:
        """One draw of w - mu: a pure function of the key and of q. Weights that are not in it stand still."""
        raise NotImplementedError

    def loss(self, x: Tensor, y: Tensor, task: int | Tensor | None) -> Tensor:
        """The loss at one draw of the weights."""
        self.drawn = self.offset(self.seed, TRAINING, self.iteration) if self.temperature else {}
        return self.outputs.loss(self.scores_at(self.drawn, x), y, task)

    def scores_at(self, offset: Weights, x: Tensor) -> Tensor:
        """The scores at mu + offset; their gradient arrives at mu."""
        weights = {name: self.parameters[name] + off for name, off in offset.items()}
        scores: Tensor = functional_call(self.net, weights, (x,))
        check_outputs(self.net, scores, self.outputs.heads)
        return scores

    def draws(self, x: Tensor, samples: int) -> Iterator[Tensor]:
        """From the posterior as it stands; without noise, the mean network each time."""
        for k in range(samples):
            yield self.scores_at(self.offset(self.seed, TESTING, k) if self.temperature else {}, x)

    @contextmanager
    def standing_at(self, offset: Weights) -> Iterator[None]:
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
        """Turn gradients g of the loss into g + gamma_in w, those of loss and prior at the draw w."""
        if not self.intrinsic:
            return
        for name, p in self.uncertain.items():
            if p.grad is not None:
                p.grad.add_(p + self.drawn[name] if name in self.drawn else p, alpha=self.intrinsic)


def normals(like: Mapping[str, Tensor], *key: int) -> Weights:
    """Standard normal noise in the shapes of ``like``, as a pure function of the key.

    >>> weights = {"a": torch.zeros(2, 3), "b": torch.zeros(4)}
    >>> noise = normals(weights, 7, 0)
    >>> noise["a"].shape, torch.equal(noise["b"], normals(weights, 7, 0)["b"])
    (torch.Size([2, 3]), True)
    """
    return {
        name: normal(
            "torch", [fold(*key, i)], t.numel(), torch.empty(1, t.numel(), dtype=t.dtype, device=t.device)
        ).view(t.shape)
        for i, (name, t) in enumerate(like.items())
    }
