"""Notice a posterior that has collapsed, and warn once.

With few samples or a large ``std_init`` the noise of E[g eps] can make some stds explode within a few steps; the
sampled networks are then useless, their units die or overflow, and the loss stays at chance for ever. Or all stds
vanish, and nothing can be learned any more. Neither shows in the loss of a single step. Nor does it show, where
batches without a finite gradient are to be passed over, that all of them are.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bgd.errors import caller_stacklevel

EXPLODED = 1e3
"""A std this many times its initial value has exploded: healthy runs stay below 20."""
VANISHED = 1e-3
"""A std below this fraction of its initial value carries no uncertainty."""
NEARLY_ALL = 0.99
PATIENCE = 5
"""Dead gradients must be seen so often in a row: one batch alone may have none, as a batch of one label under the
labels trick."""
MAX_SKIPPED = 50
"""So many steps in a row, passed over for their gradients, are no longer a bad batch or two."""

REMEDY = (
    'Pass a smaller std_init to BGD, more mc_samples, or, where it is off, std_max="init" (a cap at each weight\'s '
    "initial std)."
)


DROWNED = 4.0
"""Noise of more than so many times the size of the weights themselves drowns what they compute; the paper's largest
std is three times the size of torch's initial weights."""
STILL = 1e-3
"""A network whose weights move by less than this fraction of their size in the first hundred steps hardly learns."""
EVERY = 7
FIRST_STEPS = 98
"""Every seventh of the first steps is checked."""


class SettingsWarning(UserWarning):
    """The initial std does not suit the network: it hardly moves, or noise drowns the signal."""


class CollapseWarning(UserWarning):
    """The posterior has collapsed: training continues, but nothing more will be learned."""


class Health(NamedTuple):
    """What :func:`examine` found."""

    largest: float
    vanished: float
    dead: float

    @property
    def has_exploded(self) -> bool:
        """Whether a std has grown beyond all bounds, or is NaN, which counts as infinite."""
        return self.largest > EXPLODED

    @property
    def has_vanished(self) -> bool:
        """Whether nearly all stds are as good as 0."""
        return self.vanished >= NEARLY_ALL

    @property
    def is_dead(self) -> bool:
        """Whether nearly all weights have a gradient of exactly 0."""
        return self.dead >= NEARLY_ALL

    @property
    def message(self) -> str | None:
        """What is wrong, as a sentence, or None.

        >>> Health(largest=1.5, vanished=0.0, dead=0.1).message is None
        True
        """
        if self.has_exploded:
            return f"The std of some weights has exploded to {self.largest:.2g} times its initial value."
        if self.has_vanished:
            return f"The std of {self.vanished:.1%} of the weights has vanished: nothing more can be learned."
        if self.is_dead:
            return f"{self.dead:.1%} of the weights have a gradient of exactly 0: the sampled networks are dead."
        return None


@torch.no_grad()
def examine(stds: list[Tensor], initial: Sequence[float | Tensor], e_g: Sequence[Tensor | None]) -> Health:
    """Measure a posterior: the largest growth of a std, and the fractions of vanished stds and dead weights.

    Weights whose gradient is given as None do not count as dead or alive.

    >>> examine([torch.tensor([1.0, 2.0])], [1.0], [torch.tensor([0.0, 3.0])])
    Health(largest=2.0, vanished=0.0, dead=0.5)
    """
    largest, vanished, size, dead, checked = 0.0, 0, 0, 0, 0
    for std, scale, g in zip(stds, initial, e_g, strict=True):
        if std.numel():
            if isinstance(scale, Tensor) and scale.dim():
                least, growth = (float(end) for end in torch.aminmax(std / scale))
            else:
                least, growth = (float(end) / float(scale) for end in torch.aminmax(std))
            largest = math.inf if math.isnan(growth) else max(largest, growth)
            vanished += int(torch.count_nonzero(std < VANISHED * scale)) if least < 2 * VANISHED else 0
            size += std.numel()
            if g is not None:
                dead += g.numel() - int(torch.count_nonzero(g))
                checked += g.numel()
    return Health(largest, vanished / max(size, 1), dead / max(checked, 1))


@torch.no_grad()
def noise_ratio(means: Sequence[Tensor], stds: Sequence[Tensor]) -> float:
    """Noise over signal: the median over layers of rms(std) / rms(mean) of their weights, of two dimensions or more.

    A single layer may well begin at nearly 0, as the last one of a residual block.

    >>> noise_ratio([torch.ones(2, 2), torch.zeros(2)], [torch.full((2, 2), 3.0), torch.ones(2)])
    3.0
    """
    ratios = [
        float(std.norm() / mean.norm()) for mean, std in zip(means, stds, strict=True) if mean.dim() > 1 and mean.any()
    ]
    return median(ratios) if ratios else 0.0


class CollapseWatch:
    """Checks every seventh of the first hundred steps, where most collapses happen, then every 97th.

    Primes, so as not to meet the short last batch of an epoch every time.
    """

    def __init__(self) -> None:
        self.warned = False
        self._moved = 0.0
        self._dead_checks = 0
        self._skipped = 0

    def due(self, step: int) -> bool:
        """Whether this step is to be checked.

        >>> [CollapseWatch().due(step) for step in (1, 7, 98, 105, 194)]
        [False, True, True, False, True]
        """
        return not self.warned and step % (EVERY if step <= FIRST_STEPS else 97) == 0

    def check(self, health: Health, step: int) -> None:
        """Warn, once, where something is wrong."""
        self._dead_checks = self._dead_checks + 1 if health.is_dead else 0
        if health.has_exploded or health.has_vanished or self._dead_checks >= PATIENCE:
            self._warn(f"BGD's posterior has collapsed by step {step}. {health.message} {REMEDY}")

    def check_noise(self, noise: float) -> None:
        """Warn of noise that drowns the signal, before the first step.

        Args:
            noise: the :func:`noise_ratio` of the initial posterior.
        """
        if noise > DROWNED:
            _warn_of_settings(
                f"the noise is {noise:.2g} times the size of the weights, and drowns what they compute: lower std_init"
            )

    def check_move(self, move: float, step: int) -> None:
        """Warn, once, of a network that hardly moves.

        Args:
            move: by what fraction of their size the weights have moved in this step.
            step: one of the first hundred that are checked.
        """
        self._moved += EVERY * move
        if step == FIRST_STEPS and self._moved < STILL:
            _warn_of_settings(
                f"the weights have moved by {self._moved:.1g} of their size in {step} steps and hardly learn: raise "
                "std_init (the step of the mean is lr * std^2 times the summed gradient), leave lr at 1, and check "
                'that reduction="mean" or "sum" says what the loss is. bgd.find_std_init tries several'
            )

    def record_step(self, skipped: bool, step: int) -> None:
        """Count the steps in a row that were skipped; warn, once, where there are many."""
        self._skipped = self._skipped + 1 if skipped else 0
        if self._skipped == MAX_SKIPPED and not self.warned:
            self._warn(
                f"BGD has skipped the last {MAX_SKIPPED} steps up to step {step}: none had a finite gradient. If the "
                f"data and the loss are sound, the posterior has collapsed. {REMEDY}"
            )

    def state_dict(self) -> dict[str, float]:
        """Its counters, so that a resumed run is warned where an uninterrupted one would be."""
        return {"dead_checks": self._dead_checks, "skipped": self._skipped, "moved": self._moved}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the counters."""
        self._dead_checks, self._skipped, self._moved = state["dead_checks"], state["skipped"], state["moved"]

    def _warn(self, text: str) -> None:
        self.warned = True
        if (receive := _receiver.get()) is not None:
            receive(text)
        else:
            warnings.warn(text, CollapseWarning, stacklevel=caller_stacklevel())


def _warn_of_settings(text: str) -> None:
    warnings.warn(f"BGD's std_init does not suit this network: {text}", SettingsWarning, caller_stacklevel())


_receiver: ContextVar[Callable[[str], None] | None] = ContextVar("receiver of collapse warnings", default=None)


@contextmanager
def collapse_warnings_to(receive: Callable[[str], None]) -> Iterator[None]:
    """Inside, the text of a :class:`CollapseWarning` is passed to ``receive``, and no warning is issued.

    >>> texts = []
    >>> with collapse_warnings_to(texts.append):
    ...     CollapseWatch().check(Health(largest=1e6, vanished=0.0, dead=0.0), step=7)
    >>> texts[0].partition(".")[0]
    "BGD's posterior has collapsed by step 7"
    """
    token = _receiver.set(receive)
    try:
        yield
    finally:
        _receiver.reset(token)
