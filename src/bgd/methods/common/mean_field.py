"""A mean-field Gaussian over the weights of a network, trained by backpropagation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bgd.methods.common.base import trainable_parameters
from bgd.methods.common.penalty import Weights
from bgd.methods.common.types import MethodError


class MeanField:
    """q(theta_i) = N(mean_i, std_i^2) with std = exp(log_std), and a Gaussian prior p of the same shape.

    The means are the network's own parameters, so the network itself is the mean of the posterior.

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
        self.mean = trainable_parameters(net)
        log_std = torch.tensor(std_init).log().item()
        self.log_std = {n: nn.Parameter(torch.full_like(p, log_std)) for n, p in self.mean.items()}
        centred = prior_std is not None
        self.prior_mean = {n: torch.zeros_like(p) if centred else p.detach().clone() for n, p in self.mean.items()}
        self.prior_std = {n: torch.full_like(p, prior_std or std_init) for n, p in self.mean.items()}

    def std(self) -> Weights:
        """The std of each weight."""
        return {name: s.detach().exp() for name, s in self.log_std.items()}

    def sample(self, generator: torch.Generator) -> Weights:
        """Weights mean + std eps, differentiable with respect to both."""
        return {name: p + self.log_std[name].exp() * _randn_like(p, generator) for name, p in self.mean.items()}

    @contextmanager
    def sampled_layers(self, generator: torch.Generator) -> Iterator[None]:
        """Inside, the linear layers of the net return samples of their outputs.

        With independent Gaussian weights the outputs are Gaussian: mean W x + b, variance (std_W)^2 x^2 +
        (std_b)^2.
        """

        def add_noise(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
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
        hooks = [layer.register_forward_hook(add_noise(f"{name}." if name else "")) for name, layer in layers.items()]
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
                    f"sampling='local' supports nn.Linear only, but {name!r} belongs to {type(layer).__name__}: "
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
        """Restore a ``state_dict``, in place: the optimizer holds references to the same parameters."""
        for key in ("log_std", "prior_mean", "prior_std"):
            for name, tensor in getattr(self, key).items():
                tensor.copy_(state[key][name])


def _randn_like(t: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(t.shape, generator=generator, dtype=t.dtype, device=t.device)
