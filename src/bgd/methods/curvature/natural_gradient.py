"""Natural gradients from moving averages of Kronecker factors: what K-FAC and Noisy K-FAC share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from bgd.methods.common.base import Base, device_of
from bgd.methods.common.likelihoods import Label, check_label
from bgd.methods.common.outputs import masked
from bgd.methods.common.types import MethodError
from bgd.methods.curvature.blocks import Curvature, make_block
from bgd.methods.curvature.layers import find_layers, from_matrix, to_matrix
from bgd.methods.curvature.recording import recording
from bgd.optim.noise import fold
from bgd.validation import check_numbers, check_whole

LABELS = 2  # separates the sampled labels from the noise of the same seed and iteration


class NaturalGradient:
    """Moving averages of A and G for each layer, their damped inverses, which precondition the gradients.

    At the first and then every ``stats_every``-th iteration the factors of the batch are added, A <- rho A +
    (1 - rho) A_batch with rho = min(1 - 1/k, decay) at the k-th update, so that the first batches have equal weight. At
    every ``inverse_every``-th iteration they are inverted, (A + pi sqrt(gamma))^-1 and (G + sqrt(gamma) / pi)^-1; and
    before the first such iteration at the 1st, 2nd, 4th, 8th... batch added, as the factors of few batches are
    soon outdated.

    Args:
        net: of linear and convolution layers, and BatchNorm, whose Fisher is approximated as diagonal.
        damping: gamma.
        noise_damping: that of the roots of the inverses, for sampling weights; None for no roots. There are none before
            iteration ``inverse_every``.
        decay: the largest rho.
        stats_every: iterations between updates of the factors.
        inverse_every: iterations between inversions.
        label: the labels that G averages over; see :data:`~bgd.methods.common.likelihoods.Label`.
        seed: of the sampled labels.
    """

    def __init__(
        self,
        net: nn.Module,
        *,
        damping: float,
        noise_damping: float | None = None,
        decay: float,
        stats_every: int,
        inverse_every: int,
        label: Label,
        seed: int,
    ) -> None:
        check_label(label)
        if not 0 <= decay < 1:
            raise MethodError(f"decay={decay}: must lie in [0, 1)")
        check_whole(1, stats_every=stats_every, inverse_every=inverse_every)
        check_numbers(damping=damping)
        self.net, self.layers = net, find_layers(net)
        self.damping, self.noise_damping, self.decay = damping, noise_damping, decay
        self.stats_every, self.inverse_every = stats_every, inverse_every
        self.label, self.seed = label, seed
        self.average: Curvature = {}
        self.inverse: Curvature = {}
        self.root: Curvature = {}
        self.batches = 0  # in the average
        self._batch_factors: Curvature = {}

    def loss(self, learner: Base, forward: Callable[[], Tensor], y: Tensor, task: int | Tensor | None) -> Tensor:
        """The loss of a batch, from the scores of ``forward``; where due, also its factors."""
        if learner.iteration and (learner.iteration + 1) % self.stats_every:
            return learner.outputs.loss(forward(), y, task)
        with recording(self.net) as record:
            scores = forward()
        loss = learner.outputs.loss(scores, y, task)
        learner.check_finite(loss)
        generator = torch.Generator(scores.device).manual_seed(fold(self.seed, LABELS, learner.iteration))
        competing = masked(scores.detach(), learner.outputs.mask(y, task))
        vectors = learner.outputs.likelihood.score_gradients(competing, y, self.label, generator)
        self._batch_factors = record.curvature(scores, vectors)
        return loss

    @torch.no_grad()
    def update(self, iteration: int) -> None:
        """Add the factors of the batch to the averages, and invert these, each when it is due."""
        step = iteration + 1
        if self._batch_factors:
            self.batches += 1
            weight = max(1 / self.batches, 1 - self.decay)
            for name, block in self._batch_factors.items():
                old = self.average.get(name, block)
                self.average[name] = make_block([o.lerp(b, weight) for o, b in zip(old, block, strict=True)])
        due = step % self.inverse_every == 0
        early = bool(self._batch_factors) and step < self.inverse_every and self.batches.bit_count() == 1
        self._batch_factors = {}
        if due or early:
            self.inverse = {name: block.damped(self.damping).inverse() for name, block in self.average.items()}
        if due and self.noise_damping is not None:
            self.root = {name: block.damped(self.noise_damping).inverse_root() for name, block in self.average.items()}

    @torch.no_grad()
    def precondition(self) -> float:
        """Turn the gradients g of the layers into F^-1 g, in place; returns g^T F^-1 g."""
        total = 0.0
        for name, layer in self.layers.items():
            parameters = list(layer.parameters(recurse=False))
            if all(p.grad is None for p in parameters):
                continue
            gradient = to_matrix(layer, lambda p: torch.zeros_like(p) if p.grad is None else p.grad)
            natural = self.inverse[name].times(gradient)
            total += float((gradient * natural).sum())
            for p, part in zip(parameters, from_matrix(layer, natural), strict=True):
                p.grad = part
        return total

    def state_dict(self) -> dict[str, Any]:
        """Factors, inverses and roots: an inverse may be older than the factors, and cannot be recomputed from them."""
        stored = {"average": self.average, "inverse": self.inverse, "root": self.root}
        plain = {key: {name: list(block) for name, block in blocks.items()} for key, blocks in stored.items()}
        return {**plain, "batches": self.batches}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a ``state_dict``."""
        device = device_of(self.net)

        def blocks(key: str) -> Curvature:
            return {name: make_block([t.clone().to(device) for t in parts]) for name, parts in state[key].items()}

        self.average, self.inverse, self.root = blocks("average"), blocks("inverse"), blocks("root")
        self.batches = state["batches"]


class KLClip:
    """Scales a natural gradient d = F^-1 g down so that lr^2 d^T F d, twice the KL of a step, stays within a bound.

    Args:
        bound: of the first step; None for no clipping.
        decay: the bound's factor per iteration.

    >>> KLClip(0.01, decay=0.5).factor(lr=1.0, square=4.0, iteration=2)     # sqrt(0.0025 / 4)
    0.025
    """

    def __init__(self, bound: float | None, decay: float) -> None:
        if bound is not None and not bound > 0:
            raise MethodError(f"kl_clip={bound}: must be above 0, or None for no clipping")
        if not 0 < decay <= 1:
            raise MethodError(f"kl_clip_decay={decay}: must lie in (0, 1]")
        self.bound, self.decay = bound, decay

    def factor(self, lr: float, square: float, iteration: int) -> float:
        """min(1, sqrt(bound / (lr^2 g^T F^-1 g)))."""
        if self.bound is None or lr * lr * square <= 0:
            return 1.0
        return min(1.0, math.sqrt(self.bound * self.decay**iteration / (lr * lr * square)))

    def apply(self, optimizer: torch.optim.Optimizer, square: float, iteration: int) -> None:
        """Scale the gradients of an optimizer."""
        for group in optimizer.param_groups:
            factor = self.factor(float(group["lr"]), square, iteration)
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.mul_(factor)
