"""Losses with a probabilistic reading, and the gradients that Fisher information is made of.

Let f be the scores of one sample, and v_y = d(-log p(y|f))/df. The diagonal Fisher information of the weights
is F_i = E_y[ (J^T v_y)_i^2 ], J = df/dtheta: so all that it needs of a likelihood are the vectors v_y, for the
labels y to average over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional as F

from bgd.methods.common.types import MethodError
from bgd.plugins import describe, find
from bgd.validation import check_choice

Label = Literal["predicted", "true", "sampled", "exact"]
"""Which labels Fisher information averages over: the likeliest one (as Hsu et al.), the data's (the "empirical"
Fisher), one sample from the model, or the model's exact expectation (as many backward passes as outputs)."""


@runtime_checkable
class Likelihood(Protocol):
    """A loss with a probabilistic reading.

    Attributes:
        classification: whether the scores are logits of class labels, so that outputs can be masked with -inf and
            predictions averaged as probabilities; otherwise they are numbers, as in a regression.
    """

    classification: bool

    def loss(self, scores: Tensor, y: Tensor) -> Tensor:
        """-log p(y | scores) per sample, (B,), up to a constant."""

    def score_gradients(
        self, scores: Tensor, y: Tensor, label: Label, generator: torch.Generator | None = None
    ) -> Tensor:
        """The vectors v with sum_k v_k v_k^T = E_y[v_y v_y^T], per sample: (K, B, outputs)."""


LossFunction = Callable[[Tensor, Tensor], Tensor]
"""``loss(scores, y)`` with scores (B, outputs) and labels (B,), which returns the losses of the samples, (B,)."""


def find_likelihood(name: str | LossFunction | Likelihood) -> Likelihood:
    """The loss of a name: built-in, an entry point of ``bgd.losses``, or ``"module:attribute"``.

    What the name leads to may be a :class:`Likelihood`, a class of one, or a plain function ``loss(scores, y)``, which
    becomes a :class:`FunctionLikelihood`. Such an object can also be given directly.

    >>> find_likelihood("categorical")
    Categorical()
    >>> find_likelihood("torch.nn.functional:cross_entropy")
    FunctionLikelihood(torch.nn.functional:cross_entropy)
    >>> find_likelihood("categorcal")
    Traceback (most recent call last):
    bgd.plugins.PluginError: no loss 'categorcal': did you mean 'categorical'?
    """
    found: Any = find(name, LIKELIHOODS, "loss", "bgd.losses") if isinstance(name, str) else name
    title = repr(name if isinstance(name, str) else getattr(name, "__qualname__", name))
    if isinstance(found, type):
        if missing := _missing(found):
            raise MethodError(f"loss {title}: the class has no {missing[0]!r}; {_WAY_OUT}")
        try:
            return found()  # type: ignore[no-any-return]
        except Exception as error:
            reason = f"the class must be callable without arguments ({describe(error)})"
            raise MethodError(f"loss {title}: {reason}") from error
    if isinstance(found, Likelihood):
        return found
    if callable(found) and not hasattr(found, "score_gradients"):
        return FunctionLikelihood(found)
    raise MethodError(f"loss {title} is a {type(found).__name__}; {_WAY_OUT}")


_WAY_OUT = "give a function loss(scores, y) -> (B,), or a class with loss, score_gradients and classification"


def _missing(found: type) -> list[str]:
    return [member for member in ("loss", "score_gradients", "classification") if not hasattr(found, member)]


def check_label(label: str, likelihood: Likelihood | None = None) -> None:
    """Refuse a label choice that does not exist, or that the likelihood does not support.

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
    if label != "true" and isinstance(likelihood, FunctionLikelihood):
        raise MethodError(
            f"label={label!r}: {likelihood!r} is a plain function without a distribution of labels; choose true "
            "(such as fisher_label='true'), or write a class with score_gradients"
        )


class Categorical:
    """Classification: p(y | f) = softmax(f)_y, so v_y = softmax(f) - e_y. Outputs at -inf are left out.

    >>> Categorical().loss(torch.zeros(1, 4), torch.tensor([2])).exp()
    tensor([4.])
    """

    classification = True

    def __repr__(self) -> str:
        return "Categorical()"

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

    classification = False

    def __init__(self, std: float = 1.0) -> None:
        self.std = std

    def __repr__(self) -> str:
        return f"Gaussian(std={self.std})"

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


class FunctionLikelihood:
    """A plain function ``loss(scores, y) -> (B,)`` of class labels as a likelihood: v_y by autograd, for true labels.

    Args:
        function: the loss of each sample. Outputs that are masked arrive as scores of -inf.

    >>> def brier(scores, y):
    ...     return (scores.softmax(1) - F.one_hot(y, scores.shape[1])).square().sum(1)
    >>> loss = FunctionLikelihood(brier)
    >>> loss.loss(torch.zeros(1, 2), torch.tensor([1]))
    tensor([0.5000])
    >>> loss.score_gradients(torch.zeros(1, 2), torch.tensor([1]), "true")
    tensor([[[ 0.5000, -0.5000]]])
    """

    classification = True

    def __init__(self, function: LossFunction) -> None:
        self.function = function

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return f"{type(self).__name__}({getattr(self.function, '__module__', '?')}:{name})"

    def loss(self, scores: Tensor, y: Tensor) -> Tensor:
        """The function's losses, one for each sample."""
        losses = self.function(scores, y)
        if not isinstance(losses, Tensor) or losses.shape != scores.shape[:1]:
            shape = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
            raise MethodError(
                f"{self!r} returned {shape} for {len(scores)} samples: return one loss for each, "
                "(B,), without a mean or sum (such as reduction='none')"
            )
        return losses

    def score_gradients(
        self,
        scores: Tensor,
        y: Tensor,
        label: Label,
        generator: torch.Generator | None = None,  # noqa: ARG002
    ) -> Tensor:
        """D loss / d scores at the labels of the data; masked outputs have gradient 0, as in training."""
        check_label(label, self)
        with torch.enable_grad():
            leaf = scores.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(self.loss(leaf, y).sum(), leaf)
        return gradient.masked_fill(scores == -torch.inf, 0)[None]


LIKELIHOODS: dict[str, Callable[[], Likelihood]] = {"categorical": Categorical, "gaussian": Gaussian}
"""The built-in losses by name."""


def _check_targets(scores: Tensor, y: Tensor) -> None:
    """Shapes that merely broadcast would compare each sample with the targets of all others."""
    if y.shape != scores.shape:
        way_out = ": pass y[:, None]" if (*y.shape, 1) == scores.shape else ": a regression needs one for each output"
        raise MethodError(f"targets of shape {tuple(y.shape)} for scores of shape {tuple(scores.shape)}{way_out}")
