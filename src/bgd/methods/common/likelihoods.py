"""How a network's scores explain a label, and the gradients that Fisher information is made of.

Let f be the scores of one sample, and v_y = d(-log p(y|f))/df. The diagonal Fisher information of the weights
is F_i = E_y[ (J^T v_y)_i^2 ], J = df/dtheta: so all that it asks of a likelihood are the vectors v_y, for the
labels y to average over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from bgd import plugins
from bgd.methods.common.types import MethodError
from bgd.validation import check_choice

Label = Literal["predicted", "true", "sampled", "exact"]
"""Which labels Fisher information averages over: the likeliest one (as Hsu et al.), the data's (the
"empirical" Fisher), one draw from the model, or the model's exact expectation (as many backward passes as outputs)."""


class Likelihood(Protocol):
    """A loss with a probabilistic reading."""

    def loss(self, scores: Tensor, y: Tensor) -> Tensor:
        """-log p(y | scores) per sample, (B,), up to a constant."""

    def score_gradients(
        self, scores: Tensor, y: Tensor, label: Label, generator: torch.Generator | None = None
    ) -> Tensor:
        """The vectors v with sum_k v_k v_k^T = E_y[v_y v_y^T], per sample: (K, B, outputs)."""


def check_label(label: str, likelihood: Likelihood | None = None) -> None:
    """Refuse a label choice that does not exist, or does not go with the likelihood.

    >>> check_label("argmax")
    Traceback (most recent call last):
    bgd.errors.SettingError: label='argmax': choose one of predicted, true, sampled, exact
    """
    check_choice("label", label, get_args(Label))
    if label == "predicted" and isinstance(likelihood, Gaussian):
        raise MethodError(
            "label='predicted': the likeliest label of a Gaussian is the prediction itself, "
            "and its Fisher information would be 0; choose true, sampled or exact"
        )


class Categorical:
    """Classification: p(y | f) = softmax(f)_y, so v_y = softmax(f) - e_y. Outputs at -inf take no part.

    >>> Categorical().loss(torch.zeros(1, 4), torch.tensor([2])).exp()
    tensor([4.])
    """

    def loss(self, scores: Tensor, y: Tensor) -> Tensor:
        """Cross-entropy per sample."""
        return F.cross_entropy(scores, y, reduction="none")

    def score_gradients(
        self, scores: Tensor, y: Tensor, label: Label, generator: torch.Generator | None = None
    ) -> Tensor:
        """Softmax minus the unit vector of the label; for "exact", one per class, scaled by sqrt(p)."""
        p = scores.softmax(dim=1)
        if label == "exact":
            unit = torch.eye(p.shape[1], dtype=p.dtype, device=p.device)
            return p.sqrt().T[:, :, None] * (p - unit[:, None, :])
        if label == "predicted":
            y = scores.argmax(dim=1)
        elif label == "sampled":
            y = torch.multinomial(p, 1, generator=generator)[:, 0]
        return (p - F.one_hot(y, p.shape[1]))[None]


class Gaussian:
    """Regression: y ~ N(f, std^2), so v_y = (f - y) / std^2.

    Args:
        std: the noise of the labels.

    >>> Gaussian(std=2.0).loss(torch.tensor([[1.0]]), torch.tensor([[3.0]]))
    tensor([0.5000])
    """

    def __init__(self, std: float = 1.0) -> None:
        self.std = std

    def loss(self, scores: Tensor, y: Tensor) -> Tensor:
        """(y - f)^2 / (2 std^2), summed over outputs."""
        _check_targets(scores, y)
        return (y - scores).square().flatten(1).sum(dim=1) / (2 * self.std**2)

    def score_gradients(
        self, scores: Tensor, y: Tensor, label: Label, generator: torch.Generator | None = None
    ) -> Tensor:
        """For "exact" one unit vector per output, over std."""
        check_label(label, self)
        if label == "exact":
            unit = torch.eye(scores.shape[1], dtype=scores.dtype, device=scores.device) / self.std
            return unit[:, None, :].expand(-1, len(scores), -1)
        if label == "sampled":
            noise = torch.randn(scores.shape, generator=generator, dtype=scores.dtype, device=scores.device)
            return noise[None] / self.std
        _check_targets(scores, y)
        return (scores - y)[None] / self.std**2


def _check_targets(scores: Tensor, y: Tensor) -> None:
    """Shapes that merely broadcast would compare each sample with the targets of all others."""
    if y.shape != scores.shape:
        way_out = (
            ": hand over y[:, None]" if (*y.shape, 1) == scores.shape else ": a regression needs one for each output"
        )
        raise MethodError(f"targets of shape {tuple(y.shape)} for scores of shape {tuple(scores.shape)}{way_out}")


LIKELIHOODS: dict[str, type[Any]] = {"categorical": Categorical, "gaussian": Gaussian}


class _Wrapped(Categorical):
    def __init__(self, loss: Callable[[Tensor, Tensor], Tensor]) -> None:
        self._loss = loss

    def loss(self, scores: Tensor, y: Tensor) -> Tensor:
        return self._loss(scores, y)


def find_likelihood(name: str) -> Likelihood:
    """Stand-in until the methods branch is merged.

    >>> type(find_likelihood("categorical")).__name__
    'Categorical'
    """
    found: Any = plugins.find(name, LIKELIHOODS, "loss", "bgd.losses")
    likelihood: Likelihood = found() if isinstance(found, type) else found
    return likelihood if hasattr(likelihood, "loss") else _Wrapped(found)
