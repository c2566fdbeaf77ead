"""Learners that draw networks; and a mean-field Gaussian trained by backpropagation, which VCL and BBB share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from bgd.inference import evaluating
from bgd.methods.common.base import Base, generator_for, optimizer_for, trainable
from bgd.methods.common.outputs import Outputs, check_outputs
from bgd.methods.common.penalty import Weights
from bgd.methods.common.types import MethodError
from bgd.scenarios.types import Batch
from bgd.validation import check_choice, check_whole

Sampling = Literal["weights", "local"]
"""One draw of all weights per pass (Blundell et al., 2015), for any net; or one draw of each layer's outputs per sample
of the batch (the local reparametrisation of Kingma et al., 2015), for nets of linear layers: gradients with less noise
at about the same cost."""


class MeanField:
    """q(theta_i) = N(mean_i, std_i^2) with std = exp(log_std), and a Gaussian prior p of the same shape.

    The means are the network's own parameters, so the network as it stands is the mean of the posterior.

    Args:
        net: any module.
        std_init: the std of every weight at the start.
        prior_std: the std of a prior centred at 0; None: the prior is the initial posterior, as BGD's.

    >>> net = nn.Linear(1, 1, bias=False)
    >>> q = MeanField(net, std_init=0.5, prior_std=None)
    >>> q.kl()
    0.0
    """

    def __init__(self, net: nn.Module, std_init: float, prior_std: float | None) -> None:
        for name, value in (("std_init", std_init), ("prior_std", prior_std)):
            if value is not None and not value > 0:
                raise MethodError(f"{name}={value}: a standard deviation must be above 0")
        self.net = net
        self.mean = trainable(net)
        log_std = torch.tensor(std_init).log().item()
        self.log_std = {n: nn.Parameter(torch.full_like(p, log_std)) for n, p in self.mean.items()}
        centred = prior_std is not None
        self.prior_mean = {n: torch.zeros_like(p) if centred else p.detach().clone() for n, p in self.mean.items()}
        self.prior_std = {n: torch.full_like(p, prior_std or std_init) for n, p in self.mean.items()}

    def std(self) -> Weights:
        """The std of each weight."""
        return {name: s.detach().exp() for name, s in self.log_std.items()}

    def draw(self, generator: torch.Generator) -> Weights:
        """Weights mean + std eps, differentiable with respect to both."""
        return {name: p + self.log_std[name].exp() * _randn_like(p, generator) for name, p in self.mean.items()}

    @contextmanager
    def noisy_layers(self, generator: torch.Generator) -> Iterator[None]:
        """Inside, the linear layers of the net answer with a draw of their outputs.

        With independent Gaussian weights the outputs are Gaussian: mean W x + b, variance (std_W)^2 x^2 +
        (std_b)^2.
        """

        def noise(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
            def hook(_layer: nn.Module, args: tuple[Tensor, ...], out: Tensor) -> Tensor:
                weight, bias = (self.log_std.get(f"{name}{kind}") for kind in ("weight", "bias"))
                b = None if bias is None else (2 * bias).exp()
                if weight is not None:
                    variance = F.linear(args[0].square(), (2 * weight).exp(), b)
                elif b is not None:  # the weight is frozen
                    variance = b.expand_as(out)
                else:
                    return out
                # The floor keeps the square root's gradient finite at inputs that are all 0
                return out + variance.clamp(min=1e-20).sqrt() * _randn_like(out, generator)

            return hook

        owners = dict.fromkeys(name.rpartition(".")[0] for name in self.mean)
        layers = {name: self.net.get_submodule(name) for name in owners}
        hooks = [layer.register_forward_hook(noise(f"{name}." if name else "")) for name, layer in layers.items()]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def check_local(self) -> None:
        """Refuse local sampling where the net has trainable layers other than linear ones."""
        for name in self.mean:
            layer = self.net.get_submodule(name.rpartition(".")[0])
            if type(layer) is not nn.Linear:
                raise MethodError(
                    f"sampling='local' knows nn.Linear only, but {name!r} belongs to {type(layer).__name__}: "
                    "use sampling='weights'"
                )

    @torch.no_grad()
    def kl(self, among: dict[str, Tensor] | None = None) -> float:
        """KL(q || p) = sum_i log(s_p / s) + (s^2 + (m - m_p)^2) / (2 s_p^2) - 1/2; i runs over ``among``."""
        total = 0.0
        for name, p in self.mean.items():
            s, prior = self.log_std[name].exp(), self.prior_std[name]
            terms = (prior / s).log() + (s**2 + (p - self.prior_mean[name]) ** 2) / (2 * prior**2) - 0.5
            total += float((terms if among is None else terms[among[name]]).sum())
        return total

    @torch.no_grad()
    def add_kl_gradient(self, weight: float, among: dict[str, Tensor] | None = None) -> None:
        """Add the gradient of weight x KL: (m - m_p) / s_p^2 for means, s^2 / s_p^2 - 1 for log stds."""
        for name, p in self.mean.items():
            log_std = self.log_std[name]
            if p.grad is None or log_std.grad is None:
                continue
            precision = self.prior_std[name].square().reciprocal()
            on_mean = (p - self.prior_mean[name]).mul_(precision)
            on_log_std = (2 * log_std).exp_().mul_(precision).sub_(1)
            if among is not None:
                on_mean, on_log_std = on_mean.mul_(among[name]), on_log_std.mul_(among[name])
            p.grad.add_(on_mean, alpha=weight)
            log_std.grad.add_(on_log_std, alpha=weight)

    @torch.no_grad()
    def become_prior(self, among: dict[str, Tensor]) -> None:
        """Make the posterior the prior, for the weights marked in ``among``."""
        for name, p in self.mean.items():
            self.prior_mean[name] = torch.where(among[name], p, self.prior_mean[name])
            self.prior_std[name] = torch.where(among[name], self.log_std[name].exp(), self.prior_std[name])

    def state_dict(self) -> dict[str, Any]:
        """Stds and prior; the means are saved with the network."""
        return {
            "log_std": {n: p.detach() for n, p in self.log_std.items()},
            "prior_mean": self.prior_mean,
            "prior_std": self.prior_std,
        }

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a ``state_dict``, in place: the optimizer holds on to the same parameters."""
        for key in ("log_std", "prior_mean", "prior_std"):
            for name, tensor in getattr(self, key).items():
                tensor.copy_(state[key][name])


class Sampled(Base):
    """A learner that draws networks: how it predicts from them. ``draws`` says where they come from."""

    test_samples: int = 0

    def draws(self, x: Tensor, samples: int) -> Iterable[Tensor]:
        """The scores of ``samples`` drawn networks, one after the other: the same networks at every call."""
        raise NotImplementedError

    @torch.no_grad()
    def predict_samples(self, x: Tensor, samples: int, task: int | Tensor | None = None) -> Tensor:
        """The scores of ``samples`` draws, (samples, B, outputs): the same draws at every call."""
        with evaluating(self.net):
            return torch.stack([self.outputs.restrict(scores, task) for scores in self.draws(x, samples)])

    @torch.no_grad()
    def predict(self, x: Tensor, task: int | Tensor | None = None) -> Tensor:
        """The scores of the mean network, or what ``test_samples`` draws say together (:meth:`Outputs.average`)."""
        if not self.test_samples:
            return super().predict(x, task)
        return self.outputs.average(self.predict_samples(x, self.test_samples, task))

    def std(self) -> Weights:
        """The std of each weight."""
        raise NotImplementedError


class Variational(Sampled):
    """Minimises mean_b E_q[loss] + KL(q || prior) / N by Adam: the negative ELBO per sample.

    Args:
        net: any module that maps (B, ...) to scores (B, outputs).
        outputs: which outputs the loss runs over.
        posterior: q and its prior, over the weights of ``net``.
        lr: Adam's learning rate, for means and log stds.
        train_samples: draws per step.
        test_samples: draws that ``predict`` averages the probabilities of; 0 for the mean network alone.
        sampling: "weights" or "local".
        seed: of the draws.
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("posterior", "generator")

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        posterior: MeanField,
        *,
        lr: float,
        train_samples: int,
        test_samples: int,
        sampling: Sampling,
        seed: int,
    ) -> None:
        check_choice("sampling", sampling, get_args(Sampling))
        check_whole(1, train_samples=train_samples)
        check_whole(0, test_samples=test_samples)
        if sampling == "local":
            posterior.check_local()
        parameters = [*posterior.mean.values(), *posterior.log_std.values()]
        super().__init__(net, outputs, optimizer_for(parameters, "adam", lr))
        self.posterior = posterior
        self.train_samples, self.test_samples, self.sampling = train_samples, test_samples, sampling
        self.seed = seed
        self.generator = generator_for(net, seed)

    def loss(self, x: Tensor, y: Tensor, task: int | Tensor | None) -> Tensor:
        """E_q[loss], by Monte Carlo."""
        draws = (self.draw_scores(x, self.generator) for _ in range(self.train_samples))
        total = sum((self.outputs.loss(scores, y, task) for scores in draws), start=x.new_zeros(()))
        return total / self.train_samples

    def draw_scores(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """The scores of one draw from the posterior."""
        if self.sampling == "local":
            with self.posterior.noisy_layers(generator):
                return self.scores(x)
        scores: Tensor = functional_call(self.net, self.posterior.draw(generator), (x,))
        check_outputs(self.net, scores, self.outputs.heads)
        return scores

    def draws(self, x: Tensor, samples: int) -> Iterator[Tensor]:
        """From a generator of their own."""
        generator = generator_for(self.net, self.seed + 1)
        return (self.draw_scores(x, generator) for _ in range(samples))

    def std(self) -> Weights:
        """The std of each weight."""
        return self.posterior.std()

    def kl_weight(self) -> float:
        """The factor of the KL term: 1 / N, the number of samples that the posterior is to learn from."""
        raise NotImplementedError

    def before_step(self, batch: Batch) -> None:  # noqa: ARG002
        """Add the gradient of the KL term."""
        self.posterior.add_kl_gradient(self.kl_weight())


def check_train_size(
    train_size: int | list[int] | tuple[int, ...] | None, method: str, *, one: bool = False
) -> tuple[int, ...]:
    """The number of training samples, of each task or of any, as a tuple; of length 1 where ``one`` is asked for.

    >>> check_train_size(60000, "BBB")
    (60000,)
    >>> check_train_size(None, "BBB")
    Traceback (most recent call last):
    bgd.methods.common.types.MethodError: BBB weighs its prior against the data: set train_size, the number...
    """
    if train_size is None:
        raise MethodError(f"{method} weighs its prior against the data: set train_size, the number of training samples")
    sizes = tuple(train_size) if isinstance(train_size, list | tuple) else (train_size,)
    if not sizes:
        raise MethodError(f"train_size={train_size}: must name at least one task")
    for size in sizes:
        check_whole(1, train_size=size)
    if one and len(sizes) > 1:
        raise MethodError(f"train_size={train_size}: {method} takes one number, that of all training samples")
    return sizes


def _randn_like(t: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(t.shape, generator=generator, dtype=t.dtype, device=t.device)
