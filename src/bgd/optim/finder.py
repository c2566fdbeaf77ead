"""Which initial std suits a model and its data: train copies side by side, predict first, learn then."""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bgd.optim.bgd import BGD
from bgd.optim.diagnostics import SettingsWarning
from bgd.optim.validation import fan_in_stds

FACTORS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Of the default std."""

LOG_SCALE = 20
"""Losses that differ by more than this factor are drawn on a logarithmic scale."""


@dataclass(frozen=True)
class StdSearch:
    """What :func:`find_std_init` found.

    Attributes:
        std_init: one number per parameter, for ``BGD(model.parameters(), std_init=...)``.
        factor: the best multiple of the default std.
        losses: for each factor the mean loss of the mean network on the batches, each before it was learned from.
        default_is_fine: whether the default is as good, to one percent.
    """

    std_init: list[float]
    factor: float
    losses: dict[float, float]

    @property
    def default_is_fine(self) -> bool:
        """Whether the default's loss is within one percent of the best.

        >>> StdSearch([0.1], 2.0, {1.0: 0.5, 2.0: 0.499}).default_is_fine
        True
        """
        return self.losses.get(1.0, math.inf) <= 1.01 * self.losses[self.factor]

    @property
    def at_edge(self) -> bool:
        """Whether the best factor is the smallest or largest that was tried: others beyond it may be better still.

        >>> StdSearch([0.1], 4.0, {1.0: 0.5, 2.0: 0.4, 4.0: 0.3}).at_edge
        True
        """
        return len(self.losses) > 1 and self.factor in (min(self.losses), max(self.losses))

    def plot(self, path: str | Path) -> None:
        """Draw the losses over the factors into an image file; needs matplotlib."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5, 3), layout="constrained")
        axes = figure.subplots()
        finite = {factor: loss for factor, loss in sorted(self.losses.items()) if math.isfinite(loss)}
        axes.plot(list(finite), list(finite.values()), "o-", color="#1f4e79")
        axes.axvline(1.0, color="grey", linewidth=1, linestyle=":", label="default")
        label = "best, at the edge: try others" if self.at_edge else "best"
        axes.plot([self.factor], [self.losses[self.factor]], "o", markersize=10, color="#a33b20", label=label)
        for factor in self.losses.keys() - finite.keys():
            axes.annotate("no finite loss", (factor, max(finite.values())), rotation=90, va="top", ha="center")
        low, high = min(finite.values()), max(finite.values())
        axes.set(
            xscale="log",
            yscale="log" if 0 < low < high / LOG_SCALE else "linear",
            xlabel="std, in units of the default",
            ylabel="loss of a batch before\nit is learned from",
        )
        axes.set_xticks(list(self.losses), [f"{factor:g}" for factor in self.losses])
        axes.xaxis.minorticks_off()
        axes.legend(frameon=False)
        figure.savefig(path, dpi=130)


def find_std_init(
    model: nn.Module,
    loss: Callable[..., Tensor],
    batches: Iterable[Any],
    factors: Sequence[float] = FACTORS,
    **settings: Any,
) -> StdSearch:
    """Train a copy of the model with each of several stds, in the order of the batches, and compare their losses.

    Each batch is predicted by the mean network before it is learned from, so nothing is measured on what was seen. The
    model itself stays as it is. A few hundred batches tell; a mean that moves like SGD with the step size
    lr * eta * std^2 * batch (see :class:`bgd.BGD`) needs a larger std where it hardly moves, a smaller one where noise
    drowns the signal.

    Args:
        model: any module; it is copied.
        loss: a criterion of torch, such as ``nn.functional.cross_entropy`` or ``nn.MSELoss()``, for batches (x, y); or
            a function of one's own: ``loss(net, *batch)`` returns the mean loss, and a batch that is no tuple is its
            one argument.
        batches: what to train on, e.g. the first batches of a stream.
        factors: multiples of the default std to try.
        **settings: other settings of :class:`bgd.BGD`, the same for all.

    >>> x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    >>> def loss(net, x):
    ...     return (net(x)[:, 0] - x.sum(1)).square().mean()
    >>> found = find_std_init(nn.Linear(3, 1), loss, x.split(8), factors=(0.01, 1.0), seed=0)
    >>> found.factor
    1.0
    """
    factors = _check(model, loss, batches, factors, settings)
    kept = [batch if isinstance(batch, tuple | list) else (batch,) for batch in batches]
    if not kept:
        raise ValueError("there are no batches to try a std on: the iterable is empty")
    loss = _of_model(loss)
    stds = fan_in_stds(list(model.parameters()))
    losses = {factor: _loss_of(model, loss, kept, [factor * std for std in stds], settings) for factor in factors}
    best = min(losses, key=lambda factor: losses[factor])
    if not math.isfinite(losses[best]):
        raise ValueError(
            f"no std of {list(factors)} times the default gives a finite loss: check the batches and the loss"
        )
    return StdSearch([best * std for std in stds], best, losses)


def _check(model: Any, loss: Any, batches: Any, factors: Any, settings: dict[str, Any]) -> list[float]:
    """Refuse what cannot be tried, before anything is copied; returns the factors."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"the model is a {type(model).__name__}: give a torch.nn.Module")
    if not callable(loss) or isinstance(loss, type):
        got = loss.__name__ if isinstance(loss, type) else type(loss).__name__
        raise TypeError(f"the loss is {got}: give a function, or a criterion such as nn.MSELoss()")
    if not isinstance(batches, Iterable):
        raise TypeError(f"batches is a {type(batches).__name__}: give an iterable of batches")
    if "std_init" in settings:
        raise ValueError("std_init is what is searched for: leave it out, and give factors of the default")
    try:
        found = [float(factor) for factor in factors]
    except (TypeError, ValueError):
        found = []
    if not found or not all(math.isfinite(factor) and factor > 0 for factor in found):
        raise ValueError(f"factors must be positive numbers, got {factors!r}")
    return found


def _of_model(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A criterion of torch compares outputs with targets; as a function of a model and a batch."""
    if not (isinstance(loss, nn.Module) or getattr(loss, "__module__", None) == "torch.nn.functional"):
        return loss

    def loss_of_model(net: nn.Module, x: Any, *targets: Any) -> Tensor:
        return loss(net(x), *targets)

    return loss_of_model


def _loss_of(
    model: nn.Module, loss: Callable[..., Tensor], batches: list[Any], stds: list[float], settings: dict[str, Any]
) -> float:
    """Mean loss of a copy with these stds, predicted before learned; infinite where training fails."""
    net = copy.deepcopy(model)
    optimizer, total = BGD(net.parameters(), std_init=stds, **settings), 0.0
    with warnings.catch_warnings(), contextlib.suppress(FloatingPointError):
        warnings.simplefilter("ignore", SettingsWarning)  # stds that do not suit the network are what is compared
        for batch in batches:
            net.eval()
            with torch.no_grad():
                total += float(loss(net, *batch))
            net.train()
            optimizer.zero_grad()
            loss(net, *batch).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        if math.isfinite(total):
            return total / len(batches)
    return math.inf
