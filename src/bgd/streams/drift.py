r"""An alarm when a stream of numbers rises above what its own past explains, at a rate of false alarms that is set.

The numbers are a learner's surprise, -log p(y | x, past), or without labels the epistemic variance of its prediction.
The alarm knows neither the learner nor the data. Each value :math:`s_t` passes three steps:

1. *Rank* among the last ``memory`` values: :math:`p_t`, the share that is as large, ties counted half. Scale and shape
   of the distribution no longer matter.
2. *Two scores* that are 0 on average and large for small p: :math:`1 - 2 p` for any rise, :math:`p^{-1/2} / 2 - 1` for
   rare large values. What each is expected to be, :math:`\mu_t`, is regressed on its own moving averages: a surprise
   that its own past foretells is none, so autocorrelation and the fall of a learner that improves raise no alarm.
3. *Bets*: :math:`e_t = 1 + \kappa (g_t - \mu_t) / (1 + |\mu_t|)` is 1 on average as long as nothing changes, and above
   1 after a rise. Each bet :math:`\kappa` has the evidence of Shiryaev and Roberts, :math:`M_t = (M_{t-1} + 1) e_t`.

:math:`M_t - t` has no upward trend without a change, so by optional stopping an alarm at the mean evidence
:math:`M \ge A`, after which it begins at 0, comes on average at most n / A times in n values (an "e-detector": Shin,
Ramdas and Rinaldo, 2024). The one assumption is that the expected scores are right; ``docs/drift.md`` measures it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bgd.errors import SettingError
from bgd.streams.checking import finite, whole
from bgd.validation import check_whole

RANK_BETS: Final = (0.05, 0.15, 0.4)
"""Sizes of the bets on the rank: small ones find small changes, large ones find large changes soon."""

TAIL_BETS: Final = (0.2,)
"""Sizes of the bets on rare large values."""

RATES: Final = np.array([1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 64])
"""Of the moving averages from which the next score is expected: 1 is the last score itself."""

WARM_UP: Final = 100
"""Values after the start or an alarm that are only collected."""

REFIT: Final = 20
RIDGE: Final = 2.0


@dataclass(frozen=True)
class Event:
    """An alarm.

    Attributes:
        at: the value that raised it, counted from 0.
        since: the value from which the evidence grew: about where the change began.
        evidence: without a change it is reached at most once in so many values, on average.
    """

    at: int
    since: int
    evidence: float


def scores_of(p: float) -> tuple[float, float]:
    """Two scores of a rank p in (0, 1], both 0 on average over uniform p and never below -1: any rise, a rare value.

    >>> scores_of(0.25), scores_of(1.0)
    ((0.5, 0.0), (-1.0, -0.5))
    """
    return 1 - 2 * p, 0.5 / math.sqrt(p) - 1


def e_values(scores: Sequence[float], expected: Sequence[float]) -> list[float]:
    """One for each bet: 1 + kappa (g - mu) / (1 + |mu|), never negative, and 1 on average if mu is.

    >>> e_values((0.0, 0.0), (0.0, 0.0))
    [1.0, 1.0, 1.0, 1.0]
    >>> [round(e, 2) for e in e_values((1.0, 4.0), (0.0, 0.0))]
    [1.05, 1.15, 1.4, 1.8]
    """
    (rise, tail), (mean_rise, mean_tail) = scores, expected
    x = (rise - mean_rise) / (1 + abs(mean_rise))
    y = (tail - mean_tail) / (1 + abs(mean_tail))
    return [1 + kappa * x for kappa in RANK_BETS] + [1 + kappa * y for kappa in TAIL_BETS]


def add_evidence(evidence: Sequence[float], bets: Sequence[float]) -> list[float]:
    """Shiryaev and Roberts: M <- (M + 1) e, for each bet.

    >>> add_evidence([0.0, 3.0], [1.0, 2.0])
    [1.0, 8.0]
    """
    return [(m + 1) * e for m, e in zip(evidence, bets, strict=True)]


class SortedWindow:
    """The last ``size`` values, kept sorted.

    >>> window = SortedWindow(3)
    >>> [window.add(value) for value in (1.0, 2.0, 0.0, 2.0)]
    [0.5, 0.25, 0.8333333333333334, 0.25]
    """

    def __init__(self, size: int, values: Iterable[float] = ()) -> None:
        self.size = size
        self.values = deque(values)
        self._sorted = sorted(self.values)

    def add(self, value: float) -> float:
        """Add a value; returns the share of values that are as large, itself included, ties counted half."""
        low, high = bisect_left(self._sorted, value), bisect_right(self._sorted, value)
        count = len(self._sorted)
        share = (count - 0.5 * (low + high) + 0.5) / (count + 1)
        self._sorted.insert(high, value)
        self.values.append(value)
        if len(self.values) > self.size:
            del self._sorted[bisect_left(self._sorted, self.values.popleft())]
        return share


class Expectation:
    """What the scores are expected to be: a ridge regression of each on moving averages of its own past."""

    def __init__(self, memory: int) -> None:
        k = len(RATES)
        self.decay = 1 - 1 / (5 * memory)
        self.averages: NDArray[np.float64] = np.zeros((2, k))
        self.gram: NDArray[np.float64] = np.zeros((2, k, k))
        self.products: NDArray[np.float64] = np.zeros((2, k))
        self.weights: NDArray[np.float64] = np.zeros((2, k))
        self.count = 0

    def __call__(self) -> tuple[float, float]:
        """The next scores, expected."""
        rise, tail = (self.weights * self.averages).sum(1).tolist()
        return min(max(rise, -0.9), 0.9), max(tail, -0.4)

    def learn(self, scores: Sequence[float], counts: bool) -> None:
        """Add the scores that came; while ranks are still coarse they move the averages only."""
        g, h = np.array(scores)[:, None], self.averages
        if counts:
            self.gram = self.decay * self.gram + h[:, :, None] * h[:, None, :]
            self.products = self.decay * self.products + h * g
            self.count += 1
            if self.count % REFIT == 0:
                ridged = self.gram + RIDGE * np.eye(len(RATES))
                solved = np.linalg.solve(ridged, self.products[..., None])
                self.weights = np.asarray(solved[..., 0], dtype=np.float64)
        self.averages = np.asarray(h + RATES * (g - h), dtype=np.float64)

    ARRAYS: Final = ("averages", "gram", "products", "weights")


class DriftAlarm:
    """Raises an :class:`Event` when values rise; without a change at most once in ``every`` values, on average.

    After an alarm it begins to collect again, so a change is reported once. A fall of the values is no event. Memory
    and time of an update are constant.

    Args:
        every: the average number of values between false alarms, at least: the longer, the later a real one.
        memory: values that a new one is compared with; a change slower than this is not seen.

    >>> alarm = DriftAlarm(every=10_000)
    >>> calm, risen = np.random.default_rng(1).exponential(size=(2, 3000))
    >>> alarm.update_many(calm)
    []
    >>> [(event.since, event.at) for event in alarm.update_many(2 * risen)]
    [(2945, 3045)]
    >>> alarm.update(float("nan"))
    Traceback (most recent call last):
    bgd.errors.SettingError: value 6000 of the alarm is NaN: give numbers
    """

    def __init__(self, every: float = 10_000, *, memory: int = 2000) -> None:
        if not (math.isfinite(every) and every >= WARM_UP):
            raise SettingError(f"every={every}: give the values between false alarms, {WARM_UP} or more")
        check_whole(WARM_UP, memory=memory)
        self.every, self.memory = float(every), memory
        self.seen = self.alarms = 0
        self.expectation = Expectation(memory)
        self._restart()

    def _restart(self) -> None:
        """Collect again. The autocorrelation is kept: it belongs to the stream, not to what it shows."""
        bets = len(RANK_BETS) + len(TAIL_BETS)
        self.window = SortedWindow(self.memory)
        self.expectation.averages = np.zeros_like(self.expectation.averages)
        self.evidence, self.growth = [0.0] * bets, [1.0] * bets
        self.starts = [self.seen] * bets
        self.collected = 0

    @property
    def score(self) -> float:
        """Like a p-value: without a change, one as small comes at most once in 1 / score values, on average."""
        return min(1.0, len(self.evidence) / max(sum(self.evidence), 1e-300))

    def update(self, value: float) -> Event | None:
        """Take the next value; infinity counts as larger than all others."""
        value = float(value)
        if math.isnan(value):
            raise SettingError(f"value {self.seen} of the alarm is NaN: give numbers")
        at, expected = self.seen, self.expectation()
        scores = scores_of(self.window.add(value))
        self.expectation.learn(scores, counts=self.collected >= WARM_UP // 5)
        self.seen += 1
        self.collected += 1
        if self.collected <= WARM_UP:
            return None
        bets = e_values(scores, expected)
        self._note_starts(at, bets)
        self.evidence = add_evidence(self.evidence, bets)
        total = sum(self.evidence) / len(bets)
        if total < self.every:
            return None
        # a small bet has long gathered a little evidence from chance: the latest start of those that see the change
        since = max(start for start, m in zip(self.starts, self.evidence, strict=True) if m >= self.every / 10)
        event = Event(at, since, total)
        self.alarms += 1
        self._restart()
        return event

    def update_many(self, values: ArrayLike) -> list[Event]:
        """Take several values in their order; the same as one after the other."""
        numbers: NDArray[np.float64] = np.asarray(values, dtype=np.float64).ravel()
        if (bad := np.flatnonzero(np.isnan(numbers))).size:
            raise SettingError(f"value {self.seen + int(bad[0])} of the alarm is NaN: give numbers")
        return [event for value in numbers.tolist() if (event := self.update(value)) is not None]

    def _note_starts(self, at: int, bets: Sequence[float]) -> None:
        """Where the product of a bet's e-values was last at its lowest: the likeliest beginning of a change."""
        for j, e in enumerate(bets):
            if self.growth[j] <= 1:
                self.growth[j], self.starts[j] = 1.0, at
            self.growth[j] *= e

    def state_dict(self) -> dict[str, Any]:
        """Everything, as numbers and lists of numbers; of the same size at any time once the memory is full."""
        expectation = {name: getattr(self.expectation, name).tolist() for name in Expectation.ARRAYS}
        own = {name: getattr(self, name) for name in _NUMBERS} | {name: list(getattr(self, name)) for name in _LISTS}
        return own | {"window": list(self.window.values), "count": self.expectation.count, "expectation": expectation}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from the state of another alarm; its settings come along.

        Raises:
            SettingError: for what is no such state; the alarm is then as it was.
        """
        try:
            loaded = _alarm_of(state)
        except (TypeError, ValueError, AttributeError, LookupError, OverflowError) as error:
            raise SettingError(f"this is not the state of a DriftAlarm: {error}") from error
        self.__dict__.update(vars(loaded))


def _alarm_of(state: dict[str, Any]) -> DriftAlarm:
    """The alarm of a state, every entry of which is checked."""
    if different := {*_NUMBERS, *_LISTS, "window", "count", "expectation"} ^ set(state):
        raise ValueError(", ".join(sorted(map(str, different))))
    every, window = finite("every", [state["every"]], 1)[0], [float(value) for value in state["window"]]
    alarm = DriftAlarm(every, memory=state["memory"])
    for name in ("seen", "alarms", "collected"):
        setattr(alarm, name, whole(name, state[name]))
    for name in _LISTS:
        values = finite(name, state[name], len(getattr(alarm, name)))
        if min(values) < 0:
            raise ValueError(f"{name!r} is below 0")
        setattr(alarm, name, values)
    alarm.starts = [whole("starts", start, alarm.seen) for start in state["starts"]]
    if len(window) > min(alarm.memory, alarm.seen) or any(map(math.isnan, window)):
        raise ValueError("'window' has too many values, or NaN")
    alarm.window = SortedWindow(alarm.memory, window)
    expected, arrays = alarm.expectation, state["expectation"]
    expected.count = whole("count", state["count"])
    if set(arrays) != set(Expectation.ARRAYS):
        raise ValueError("'expectation' has other entries")
    for name in Expectation.ARRAYS:
        array = np.array(arrays[name], dtype=np.float64)
        if array.shape != getattr(expected, name).shape or not np.isfinite(array).all():
            raise ValueError(f"{name!r} has another shape, or is not finite")
        setattr(expected, name, array)
    return alarm


_NUMBERS: Final = ("every", "memory", "seen", "alarms", "collected")
_LISTS: Final = ("evidence", "growth", "starts")
