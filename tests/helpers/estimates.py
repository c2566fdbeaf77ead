"""Estimates of E[g] and E[g eps] over many passes, with their standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from bgd.optim.estimators.perturbation import Perturbation

BATCH = 8
Loss = Callable[[nn.Module], Tensor]


def find_conflicts(model: nn.Module, loss: Loss) -> frozenset[int]:
    """The parameters that are used in several ways, as a first pass finds them."""
    params = list(model.parameters())
    with Perturbation(params, [torch.zeros_like(p) for p in params], BATCH, 0, frozenset()) as first:
        loss(model)
    return frozenset(first.conflicts)


def sample_expectations(model: nn.Module, loss, passes: int, std: float, shared: bool) -> list[tuple[Tensor, Tensor]]:
    """Means of g and g eps over many passes with their squared standard errors, all parameters in one row."""
    params = list(model.parameters())
    generator = torch.Generator().manual_seed(int(shared))
    rows: list[list[Tensor]] = [[], []]
    conflicts = find_conflicts(model, loss)
    for number in range(passes):
        eps = [torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in params]
        model.zero_grad()
        if shared:
            before = [p.detach().clone() for p in params]
            with torch.no_grad():
                torch._foreach_add_(params, eps, alpha=std)
            loss(model).backward()
            with torch.no_grad():
                torch._foreach_copy_(params, before)
            products = [p.grad * e for p, e in zip(params, eps, strict=True)]
        else:
            noise = [(std * e).requires_grad_() for e in eps]
            with Perturbation(params, noise, BATCH, 7919 * number, conflicts):
                value = loss(model)
            value.backward()
            products = [z.grad * e for z, e in zip(noise, eps, strict=True)]
        rows[0].append(torch.cat([p.grad.flatten() for p in params]))
        rows[1].append(torch.cat([g.flatten() for g in products]))
    found = []
    for kind in rows:
        values = torch.stack(kind).double()
        found.append((values.mean(0), values.var(0) / passes))
    return found


def agree(model: nn.Module, loss: Loss, passes: int, std: float = 0.1) -> None:
    """Hold that noise for each example and noise for the batch give the same expectations, within their errors."""
    for ours, theirs in zip(
        sample_expectations(model, loss, passes, std, shared=False),
        sample_expectations(model, loss, passes, std, shared=True),
        strict=True,
    ):
        scores = (ours[0] - theirs[0]) / (ours[1] + theirs[1]).sqrt().clamp(min=1e-12)
        # standard normal scores: their largest of n is below sqrt(2 log n) + 2 with probability above 0.99
        assert scores.abs().max() < math.sqrt(2 * math.log(len(scores))) + 2
        # weights share their noise, so the scores are correlated: a loose bound on the mean square
        assert scores.square().mean() < 2.5
