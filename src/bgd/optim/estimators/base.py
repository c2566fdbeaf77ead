"""The contract between the optimizer and its estimators: what one is given, what it returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from bgd.optim.batchnorm import RunningStatistics
from bgd.optim.estimators.gradient_sums import GradientSums
from bgd.optim.update import Expected


@dataclass
class Expectations:
    """E[g] and E[g eps] of the summed loss of a batch, for each parameter of a step.

    Attributes:
        e_g: one tensor per parameter, still to be multiplied by ``scale``.
        e_g_eps: likewise.
        loss: mean over the samples; None where it is not known.
        has_gradient: whether each parameter had a gradient at all; those without keep their posterior.
        scale: turns the sums into expectations; kept apart, so that a compiled update reads each tensor once.
        compiled: whether the update should be compiled, as the estimate was.
        in_stds: whether ``e_g_eps`` holds std E[g eps], as the one-pass estimator has it.
        examples: how many the batch has; 0 where it is not known.
        ends: smallest and largest of each ``e_g_eps``, once :meth:`nonfinite` has looked.
    """

    e_g: list[Tensor]
    e_g_eps: list[Tensor]
    loss: Tensor | None
    has_gradient: list[bool]
    scale: float = 1.0
    compiled: bool = False
    in_stds: bool = False
    examples: int = 0
    ends: list[tuple[float, float]] | None = None

    def sums(self) -> Iterator[Expected]:
        """What is still to be multiplied by ``scale``, tensor by tensor; None where there is no gradient."""
        for g, g_eps, known in zip(self.e_g, self.e_g_eps, self.has_gradient, strict=True):
            yield (g, g_eps) if known else (None, None)

    def scaled(self, stds: Sequence[Tensor]) -> Iterator[Expected]:
        """E[g] and E[g eps], tensor by tensor, for these stds."""
        for (g, g_eps), std in zip(self.sums(), stds, strict=True):
            if g is None or g_eps is None:
                yield None, None
            else:
                yield g * self.scale, (g_eps / std if self.in_stds else g_eps) * self.scale

    def nonfinite(self) -> list[int]:
        """The parameters, by number, whose expectations are NaN, infinite, or would overflow when scaled."""
        n = len(self.e_g)
        ends = [torch.aminmax(s) if s.numel() else (s.sum(), s.sum()) for s in self.e_g_eps]
        found = self._scaled([*(s.sum() for s in self.e_g), *(low for low, _ in ends), *(high for _, high in ends)])
        self.ends = [(low / self.scale, high / self.scale) for low, high in zip(found[n:-n], found[-n:], strict=True)]
        if all(map(math.isfinite, found)):
            return []
        # A sum may overflow where its terms do not: check the terms.
        found[:n] = self._scaled([s.abs().amax() if s.numel() else s.sum() for s in self.e_g])
        return [i for i in range(n) if not all(map(math.isfinite, found[i::n]))]

    def _scaled(self, values: list[Tensor]) -> list[float]:
        # in their own type, in which they may overflow
        if len({(value.dtype, value.device) for value in values}) == 1:
            return list((torch.stack(values) * self.scale).tolist())
        return [float(value * self.scale) for value in values]


class Sharing(Protocol):
    """How several processes share the samples or the batch of a step; alone, one process does all."""

    def samples(self, count: int) -> range:
        """Those of ``count`` samples that this process draws."""

    def place(self) -> tuple[int, int]:
        """(i, n): this process has the i-th of n parts of the batch."""

    def reduce(self, sums: GradientSums, batch_factor: float) -> float:
        """Add up the sums of all processes; returns what turns them into sums over the examples of the batch."""


class Alone:
    """One process draws all samples.

    >>> Alone().samples(3)
    range(0, 3)
    """

    def samples(self, count: int) -> range:
        """All of them."""
        return range(count)

    def place(self) -> tuple[int, int]:
        """The whole batch."""
        return 0, 1

    def reduce(self, sums: GradientSums, batch_factor: float) -> float:
        """Nothing to add."""
        del sums
        return batch_factor


@dataclass
class Step:
    """All that an estimator may use of an optimizer during one step.

    Attributes:
        params: the parameters that learn.
        means: of their posterior.
        stds: of their posterior.
        samples: the numbers of the samples that this process draws.
        noise: from numbers of samples to N(0, 1) noise, one tensor (len(numbers), *p.shape) per parameter, valid until
            the next call.
        write: sets the weights to mean + std * eps, or to the mean where it is given None.
        new_sums: makes zeros to add gradients to.
        statistics: the running statistics of normalisation layers, averaged over samples.
        sharing: how processes share the work.
        antithetic: whether samples come in pairs (+eps, -eps).
        batch_factor: turns the loss of this process into a sum over its examples: 1, or the batch size for a mean.
        examples: how many the caller says that the batch has, that of all processes once they have shared; 0 where
            nobody has said.
        afterwards: called once the posterior has been updated.
    """

    params: list[Tensor]
    means: list[Tensor]
    stds: list[Tensor]
    samples: range
    noise: Callable[[Sequence[int]], list[Tensor]]
    write: Callable[[Sequence[Tensor] | None], None]
    new_sums: Callable[[], GradientSums]
    statistics: RunningStatistics
    sharing: Sharing = field(default_factory=Alone)
    antithetic: bool = False
    batch_factor: float = 1.0
    examples: int = 0
    afterwards: list[Callable[[], None]] = field(default_factory=list)

    @cached_property
    def sums(self) -> GradientSums:
        """Zeros to add gradients to, made where an estimator needs them."""
        return self.new_sums()

    @torch.no_grad()
    def expectations(self) -> Expectations:
        """From the sums of this process to E[g] and E[g eps] of the summed loss of all."""
        sums = self.sums
        factor = self.sharing.reduce(sums, self.batch_factor)  # from here on the counts are those of all processes
        self.examples = sums.examples or self.examples
        if self.antithetic and sums.count % 2:
            raise RuntimeError(f"antithetic noise comes in pairs, got {sums.count} samples")
        has_gradient = sums.has_gradient or [True] * len(sums.params)
        return Expectations(sums.e_g, sums.e_g_eps, sums.mean_loss(), has_gradient, factor / sums.count)


Estimator = Callable[[Step], Expectations]
"""Estimates the expectations of one step."""
