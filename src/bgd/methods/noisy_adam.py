"""Noisy Adam (Zhang, Sun, Duvenaud & Grosse, 2018, Algorithm 1)."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from bgd.inference import evaluating
from bgd.methods.common.outputs import Outputs, masked
from bgd.methods.common.penalty import Weights
from bgd.methods.common.types import MethodError
from bgd.methods.curvature.gradient_powers import sum_gradient_powers
from bgd.methods.curvature.noisy import Noisy, Prior, standard_normals
from bgd.scenarios.types import Batch
from bgd.validation import check_choice

NoisyFisher = Literal["gradient", "sample"]
"""What f averages: the square of the batch's mean gradient, or the mean of the squared gradients of its samples."""


class NoisyAdam(Noisy):
    """A Gaussian per weight, its variance an inverse diagonal Fisher f: Adam's relative, with f where Adam has sqrt f.

    With gamma_in = lambda / (N eta), gamma = gamma_in + gamma_ex, and l the mean log-likelihood of the batch, step k is

        w  ~ N(mu, lambda / N / (f + gamma_in))
        v  = dl/dw - gamma_in w
        m <- beta1 m + (1 - beta1) v
        f <- beta2 f + (1 - beta2) (dl/dw)^2
        mu <- mu + lr m / (1 - beta1^k) / (f + gamma)

    At lambda = 0 there is no noise, and two differences from Adam remain: no square root, and f is not
    bias-corrected. (dl/dw)^2 is the square of a mean over the batch, as in Adam: the larger the batch, the
    wider the posterior. With ``fisher="sample"`` it is the mean over samples of their squares, and at lambda = 1 the
    posterior is that of Bayes' rule whatever the batch size.

    Args:
        train_size: N, the number of training samples.
        lr: step size, the paper's alpha.
        beta1: decay of the momentum m.
        beta2: decay of f.
        kl_weight: lambda, the weight of KL(q || prior): 1 for Bayes' rule, 0 for no noise and no prior.
        prior_variance: eta, of the prior N(0, eta) of every weight.
        damping: gamma_ex, which damps the step, but not the noise. While f is near 0, the step is lr / damping times
            the gradient: keep that ratio at a learning rate that SGD could use, or a deep network diverges at once.
        fisher: "gradient", the square of the step's own gradient, as in the paper; or "sample", the mean over samples
            of their squares, at the cost of a second pass.
        std_init: the std of every weight at the start: a term in the precision of q, not of the step, that decays as
            beta2^k. None for the paper's start at the std of the prior, with which a deep network diverges.
        test_samples: networks whose probabilities ``predict`` averages; 0 for the mean network alone.
        seed: of the samples.

    >>> from bgd.scenarios.heads import Heads
    >>> learner = NoisyAdam(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),))), train_size=1000, std_init=0.05)
    >>> learner.std()["bias"]
    tensor([0.0500, 0.0500])
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("m", "f")

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        train_size: int | None = None,
        lr: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        kl_weight: float = 1.0,
        prior_variance: float = 0.1,
        damping: float = 0.01,
        fisher: NoisyFisher = "gradient",
        std_init: float | None = 0.01,
        test_samples: int = 0,
        seed: int = 0,
    ) -> None:
        check_choice("fisher", fisher, get_args(NoisyFisher))
        for name, beta in (("beta1", beta1), ("beta2", beta2)):
            if not 0 <= beta < 1:
                raise MethodError(f"{name}={beta}: a decay must lie in [0, 1)")
        prior = Prior(train_size, kl_weight, prior_variance, damping)
        super().__init__(net, outputs, torch.optim.SGD(net.parameters(), lr=lr), prior, test_samples, seed)
        if std_init is not None and not 0 < std_init <= prior_variance**0.5:
            raise MethodError(
                f"std_init={std_init}: must be above 0 and at most {prior_variance**0.5:g}, "
                f"the std of the prior (prior_variance={prior_variance})"
            )
        self.beta1, self.beta2, self.fisher = beta1, beta2, fisher
        self.initial_precision = (
            0.0 if std_init is None else max(0.0, self.temperature / std_init**2 - self.intrinsic_damping)
        )
        self.m, self.f = ({name: torch.zeros_like(p) for name, p in self.parameters.items()} for _ in "mf")

    @torch.no_grad()
    def std(self) -> Weights:
        """sqrt(lambda / N / (f + gamma_in))."""
        if not self.temperature:
            return {name: torch.zeros_like(p) for name, p in self.noisy_parameters.items()}
        known = self.initial_precision * self.beta2**self.iteration + self.intrinsic_damping
        return {name: (self.temperature / (self.f[name] + known)).sqrt_() for name in self.noisy_parameters}

    @torch.no_grad()
    def sample_offset(self, *key: int) -> Weights:
        """Std times noise."""
        noise = standard_normals(self.noisy_parameters, *key)
        return {name: std.mul_(noise[name]) for name, std in self.std().items()}

    @torch.no_grad()
    def before_step(self, batch: Batch) -> None:
        """Update f and m, and set the gradient to -m / (1 - beta1^k) / (f + gamma)."""
        for name, square in self.squared_gradients(batch).items():
            self.f[name].lerp_(square, 1 - self.beta2)
        self.add_prior()
        correction = 1 - self.beta1 ** (self.iteration + 1)
        for name, p in self.parameters.items():
            if p.grad is not None:
                self.m[name].lerp_(p.grad, 1 - self.beta1)
                torch.div(self.m[name], (self.f[name] + self.damping).mul_(correction), out=p.grad)

    def squared_gradients(self, batch: Batch) -> Weights:
        """(dl/dw)^2 at the sampled weights: of the batch's mean, or of each sample of the batch."""
        if self.fisher == "gradient":
            return {name: p.grad.square() for name, p in self.parameters.items() if p.grad is not None}

        def at_scores(scores: Tensor) -> Tensor:
            scores = masked(scores, self.outputs.mask(batch.y, batch.task))
            return self.outputs.likelihood.score_gradients(scores, batch.y, "true")

        with self.weights_at(self.current_offset), evaluating(self.net):
            sums = sum_gradient_powers(self.net, batch.x, at_scores, power=2)
        return {name: total / len(batch.x) for name, total in sums.items()}
