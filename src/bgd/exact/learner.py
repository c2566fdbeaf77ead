"""Features, their sums, and the posterior that follows from them: all that a stream of batches needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from bgd.exact import statistics
from bgd.exact.checking import check_state
from bgd.exact.features.base import Features
from bgd.exact.head import ExactError
from bgd.exact.precision import products
from bgd.exact.statistics import Posterior, Statistics

BLOCK = 1024
"""Examples that are added to the sums at once: one product for all, instead of one for each batch."""

REFRESH = 4
"""Progress is measured by a posterior solved at most this many times D examples ago."""

MakeFeatures = Callable[[tuple[int, ...]], Features]
"""Makes the features for inputs of a shape."""


class Known(NamedTuple):
    """What has been learnt: sums, and the features they are about."""

    features: Features
    sums: Statistics
    shape: tuple[int, ...]


class Solution(NamedTuple):
    """A posterior, and the features it is about.

    >>> from bgd.exact.features import Identity
    >>> learner = ExactLearner(Identity, outputs=1)
    >>> learner.learn(torch.zeros(2, 3), torch.ones(2, 1))
    >>> learner.solution().mean(torch.zeros(1, 3)).round(decimals=2)  # 2 / (2 + ridge), ridge 0.01
    tensor([[1.]], dtype=torch.float64)
    """

    features: Features
    posterior: Posterior
    dtype: torch.dtype = torch.float32

    def mean(self, x: Tensor) -> Tensor:
        """W^T phi(x), (B, K), float64."""
        with torch.no_grad():
            mean: Tensor = compute(self.features, x, self.dtype).double() @ self.posterior.mean
            return mean

    def variance(self, x: Tensor) -> Tensor:
        """The epistemic variance phi^T L^-1 phi, (B,), in units of the noise variance."""
        with torch.no_grad():
            return self.posterior.variance(compute(self.features, x, self.dtype))


def compute(features: Features, x: Tensor, dtype: torch.dtype) -> Tensor:
    """The features of inputs, rounded to ``dtype``, (B, D): the same whether they are learnt or predicted.

    >>> from bgd.exact.features import Identity
    >>> compute(Identity((1,)), torch.full((1, 1), 0.3), torch.bfloat16).tolist()
    [[0.30078125, 1.0]]
    """
    with products(dtype):
        phi: Tensor = features(x).to(dtype)
    return phi


class Block(NamedTuple):
    """Predictions of a block of examples just before it was learnt, for a measure of progress."""

    mean: Tensor
    """(B, K) by an earlier posterior: solving for each block would cost more than learning it."""
    targets: Tensor
    """(B, K)."""


class ExactLearner:
    """Learns batches (x, targets) exactly: after any batch, :meth:`solution` is that of all examples so far.

    Batches wait in ``pending`` until there are ``block`` examples, and are then added to the sums at once. The first
    block also sets the features. Asking for the solution changes no bit of what follows.

    Args:
        make_features: see :data:`MakeFeatures`.
        outputs: K.
        ridge: precision of the prior, where features have |phi|^2 = 1 on average.
        discount: gamma: an example counts gamma^age, with its age in examples; 1 forgets nothing.
        block: see above.
        dtype: of the features and their products, float32, float64 or, often faster, bfloat16 (see
            :func:`bgd.exact.precision.products`); sums and solution are float64.

    >>> from bgd.exact.features import Identity
    >>> learner = ExactLearner(Identity, outputs=1, ridge=1e-6)
    >>> x = torch.arange(10.0)[:, None]
    >>> learner.learn(x, 2 * x + 1)
    >>> learner.solution().mean(torch.tensor([[20.0]])).round(decimals=3)
    tensor([[41.]], dtype=torch.float64)
    """

    def __init__(
        self,
        make_features: MakeFeatures,
        outputs: int,
        ridge: float = 0.01,
        discount: float = 1.0,
        block: int = BLOCK,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        if not ridge > 0:
            raise ExactError(f"ridge={ridge}: the prior needs a precision above 0; use a small one, as 1e-6")
        if not 0 < discount <= 1:
            raise ExactError(f"discount={discount}: it lies in (0, 1]; 1 forgets nothing")
        self.make_features, self.outputs, self.ridge, self.discount = make_features, outputs, ridge, discount
        self.block, self.dtype = block, dtype
        self.known: Known | None = None
        self.pending: list[tuple[Tensor, Tensor]] = []
        self.earlier: dict[str, Any] | None = None
        self._solution: Solution | None = None

    def learn(self, x: Tensor, targets: Tensor) -> Block | None:
        """Learn a batch: inputs (B, ...) and targets (B, K); where it completes a block, how that was predicted.

        Targets with more columns than before bring new outputs, such as classes, which were 0 until then.
        """
        if not (torch.isfinite(x.sum(dtype=torch.float64)) and torch.isfinite(targets.sum(dtype=torch.float64))):
            raise ExactError("the batch contains NaN or infinity: replace or drop those examples; nothing was learnt")
        if targets.ndim != 2 or len(targets) != len(x) or targets.shape[1] < self.outputs:
            raise ExactError(
                f"targets of shape {tuple(targets.shape)} for {len(x)} inputs: ({len(x)}, {self.outputs}) are needed, "
                "or more columns for new outputs"
            )
        if targets.shape[1] > self.outputs:
            self._add_outputs(targets.shape[1] - self.outputs)
        self.pending.append((x.detach().clone(), targets.detach().clone()))
        self._solution = None
        if sum(len(x) for x, _ in self.pending) < self.block:
            return None
        self.known, block = self._learn_pending(self.known)
        self.pending = []
        self._refresh(self.known.sums)
        return block

    def _add_outputs(self, extra: int) -> None:
        """What has been learnt gets zero columns, as do the targets that wait."""
        self.outputs += extra
        self.pending = [(x, pad(targets, (0, extra))) for x, targets in self.pending]
        if self.known is not None:
            self.known = self.known._replace(sums=statistics.add_outputs(self.known.sums, extra))
        if self.earlier is not None:
            self.earlier = {**self.earlier, "mean": pad(self.earlier["mean"], (0, extra))}

    def solution(self) -> Solution | None:
        """Of all examples so far, pending ones included; None before any. Solved when asked for, and kept until then.

        >>> ExactLearner(lambda shape: None, outputs=1).solution() is None
        True
        """
        if self._solution is None and (known := self.everything()) is not None:
            self._solution = Solution(known.features, statistics.solve(known.sums, self.ridge), self.dtype)
        return self._solution

    def everything(self) -> Known | None:
        """What is known with the pending batches added, in memory of its own where there are any."""
        if not self.pending:
            return self.known
        known = self.known
        return self._learn_pending(known and known._replace(sums=statistics.copy(known.sums)))[0]

    def _learn_pending(self, known: Known | None) -> tuple[Known, Block | None]:
        """Add the pending batches to ``known``, in place."""
        x, targets = (torch.cat(parts) for parts in zip(*self.pending, strict=True))
        if known is None:
            shape = tuple(x.shape[1:])
            features = self.make_features(shape).to(x.device).fit(x)
            known = Known(features, statistics.empty(features.dim, self.outputs, x.device), shape)
        with torch.no_grad():
            phi = compute(known.features, x, self.dtype)
        weights = None
        if self.discount < 1:
            weights = self.discount ** torch.arange(len(x) - 1, -1, -1, device=x.device, dtype=self.dtype)
            statistics.discount_(known.sums, self.discount ** len(x))
        statistics.add_(known.sums, phi, targets, weights)
        if (earlier := self.earlier) is None:
            return known, None
        return known, Block(phi.double() @ earlier["mean"], targets)

    def _refresh(self, sums: Statistics) -> None:
        """Solve for the measure of progress, after D examples and then every ``REFRESH`` x D: a sixth of the work."""
        due = self.earlier["examples"] + REFRESH * len(sums.cross) if self.earlier else len(sums.cross)
        if float(sums.examples) >= due:
            self.earlier = {"mean": statistics.solve(sums, self.ridge).mean, "examples": float(sums.examples)}

    def state_dict(self) -> dict[str, Any]:
        """All that what follows depends on: tensors, numbers, and containers of them."""
        state: dict[str, Any] = {
            "pending": [list(pair) for pair in self.pending],
            "known": None,
            "earlier": self.earlier,
        }
        if self.known is not None:
            features, sums, shape = self.known
            state["known"] = {"shape": list(shape), "features": dict(features.state_dict()), "sums": list(sums)}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state of a learner made with the same arguments.

        Raises:
            ExactError: for what is no such state; the learner is then as it was.
        """
        check_state(state)
        known, earlier = None, state["earlier"]
        pending = [(x.clone(), targets.clone()) for x, targets in state["pending"]]
        if state["known"] is not None:
            shape = tuple(state["known"]["shape"])
            features = self.make_features(shape)
            _load_features(features, state["known"]["features"])
            known = Known(features, statistics.copy(Statistics(*state["known"]["sums"])), shape)
            if features.dim != len(known.sums.cross):
                raise ExactError(f"the sums are of {len(known.sums.cross)} features, and there are {features.dim}")
        self.outputs = known.sums.cross.shape[1] if known else self.outputs
        self.known, self.earlier, self.pending, self._solution = known, earlier, pending, None


def _load_features(features: Features, state: dict[str, Tensor]) -> None:
    try:
        features.load_state_dict(state)
    except RuntimeError as error:  # torch's, which lists all that differs
        reason = " ".join(str(error).split())
        raise ExactError(f"the features of this state are of another learner: {reason}") from error
