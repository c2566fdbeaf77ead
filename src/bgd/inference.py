"""Predictions of a posterior, with their uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.func import functional_call

from bgd.optim.bgd import BGD
from bgd.validation import check_choice

Inference = Literal["map", "mc", "vote", "mean_softmax"]
INFERENCES: tuple[Inference, ...] = get_args(Inference)


def entropy(probs: Tensor) -> Tensor:
    """Entropy in nats over the last dimension: - sum_c p_c log p_c.

    >>> entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor([0.6931, 0.0000])
    """
    terms: Tensor = torch.special.entr(probs)
    return terms.sum(-1)


@dataclass(frozen=True)
class Prediction:
    """Predictions of one mean network and S sampled ones for N inputs and C classes.

    Attributes:
        probs: (N, C): mean softmax of the sampled networks; softmax of the mean network where there are none.
        map_probs: (N, C): softmax of the mean network.
        votes: (N, C): how many sampled networks choose a class.
        sample_labels: (S, N): what each sampled network chooses.
        expected_entropy: (N,): mean entropy of the sampled networks' own probabilities.
    """

    probs: Tensor
    map_probs: Tensor
    votes: Tensor
    sample_labels: Tensor
    expected_entropy: Tensor

    def __len__(self) -> int:
        return len(self.probs)

    def __repr__(self) -> str:
        inputs, classes = self.probs.shape
        return f"Prediction({inputs} inputs, {classes} classes, {len(self.sample_labels)} sampled networks)"

    @property
    def entropy(self) -> Tensor:
        """(N,): predictive entropy H[mean_s p_s], the whole uncertainty."""
        return entropy(self.probs)

    @property
    def mutual_information(self) -> Tensor:
        """(N,): H[mean_s p_s] - mean_s H[p_s], the part of the uncertainty that more data could remove."""
        return (self.entropy - self.expected_entropy).clamp(min=0)

    @property
    def labels(self) -> Tensor:
        """(N,): the class of the largest probability."""
        return self.probs.argmax(-1)

    def labels_by(self, method: Inference) -> Tensor:
        """(N,) the chosen classes; for ``"mc"`` (S, N), one choice per sampled network.

        A tied vote goes to the class with the larger mean probability.
        """
        check_choice("method", method, INFERENCES)
        if method == "map":
            return self.map_probs.argmax(-1)
        if method == "mc":
            return self.sample_labels
        if method == "vote":
            return (self.votes + self.probs / 2).argmax(-1)
        return self.probs.argmax(-1)

    def accuracy(self, labels: Tensor, method: Inference = "mean_softmax") -> float:
        """Fraction of right answers; ``"mc"`` is the paper's: the mean accuracy of the single sampled networks.

        >>> p = Prediction(torch.eye(2), torch.eye(2), torch.eye(2), torch.tensor([[0, 1], [0, 0]]), torch.zeros(2))
        >>> p.accuracy(torch.tensor([0, 1])), p.accuracy(torch.tensor([0, 1]), "mc")
        (1.0, 0.75)
        """
        if labels.shape != (len(self),):
            raise ValueError(f"{len(self)} predictions need {len(self)} labels, got a tensor {tuple(labels.shape)}")
        chosen = self.labels_by(method)
        if chosen.numel() == 0:
            raise ValueError(f"no accuracy of nothing: there are no predictions by {method!r}")
        return float((chosen == labels.to(chosen.device)).float().mean())


@torch.no_grad()
def predict(
    model: nn.Module,
    optimizer: BGD | None,
    inputs: Tensor | Iterable[Any],
    samples: int = 10,
    outputs: Tensor | None = None,
) -> Prediction:
    """Predict with the mean network and with ``samples`` networks sampled from the posterior.

    The model runs in evaluation mode and is left as it was. All inputs are seen by the same sampled networks.

    Args:
        model: a classifier that returns logits (N, C).
        optimizer: its posterior; None for a model without one, which has only a MAP prediction.
        inputs: one tensor, or a DataLoader (any iterable of batches; of a tuple the first item is the input).
        samples: S, the number of sampled networks; 0 for MAP only.
        outputs: a mask (C,) of the outputs to choose from, e.g. the heads of a known task; None for all.

    Example:
        >>> model = nn.Linear(3, 2)
        >>> optimizer = BGD(model.parameters(), std_init=0.1)
        >>> p = predict(model, optimizer, torch.randn(5, 3), samples=10)
        >>> p.probs.shape, p.entropy.shape, bool((p.mutual_information >= 0).all())
        (torch.Size([5, 2]), torch.Size([5]), True)
    """
    if samples < 0:
        raise ValueError(f"samples must be a whole number from 0, got {samples}")
    if samples and optimizer is None:
        samples = 0
    weights = _sampled_weights(model, optimizer, samples) if optimizer is not None and samples else []
    batches = [inputs] if isinstance(inputs, Tensor) else inputs
    with evaluating(model):
        parts = [_predict_batch(model, weights, _input_of(batch), outputs) for batch in batches]
    if not parts:
        raise ValueError("there are no inputs to predict: the iterable is empty")
    columns = list(zip(*parts, strict=True))
    return Prediction(
        probs=torch.cat(columns[0]),
        map_probs=torch.cat(columns[1]),
        votes=torch.cat(columns[2]),
        sample_labels=torch.cat(columns[3], dim=1),
        expected_entropy=torch.cat(columns[4]),
    )


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside; after it every module is in its former mode, frozen ones too.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2).eval())
    >>> with evaluating(model):
    ...     [module.training for module in model]
    [False, False]
    >>> [module.training for module in model]
    [True, False]
    """
    training = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in training.items():
            module.training = mode


def _predict_batch(
    model: nn.Module, weights: list[dict[str, Tensor]], x: Tensor, outputs: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    map_probs = _softmax(model(x), outputs)
    total, own_entropy = torch.zeros_like(map_probs), map_probs.new_zeros(len(map_probs))
    chosen = []
    for sampled in weights:
        probs = _softmax(functional_call(model, sampled, (x,)), outputs)
        total += probs
        own_entropy += entropy(probs)
        chosen.append(probs.argmax(-1))
    if not weights:
        no_labels = torch.empty(0, len(map_probs), dtype=torch.int64, device=map_probs.device)
        return map_probs, map_probs, torch.zeros_like(map_probs), no_labels, entropy(map_probs)
    labels = torch.stack(chosen)
    votes = torch.zeros_like(map_probs).scatter_add_(1, labels.T, torch.ones_like(labels.T, dtype=map_probs.dtype))
    return total / len(weights), map_probs, votes, labels, own_entropy / len(weights)


def _sampled_weights(model: nn.Module, optimizer: BGD, samples: int) -> list[dict[str, Tensor]]:
    names: dict[Tensor, str] = {p: name for name, p in model.named_parameters()}
    sampled = optimizer.sample_weights(samples)
    named = {names[p]: stacked for p, stacked in sampled.items() if p in names}
    if not any(p in optimizer.state for p in names):
        raise ValueError("the optimizer holds none of the model's parameters: is it the optimizer of another model?")
    return [{name: stacked[s] for name, stacked in named.items()} for s in range(samples)]


def _softmax(logits: Tensor, outputs: Tensor | None) -> Tensor:
    if logits.dim() != 2:
        raise ValueError(f"predict needs a classifier that returns logits (N, C), got {tuple(logits.shape)}")
    if logits.shape[1] < 2:
        raise ValueError("predict needs the logits of at least two classes: one output has no probabilities to share")
    if outputs is not None:
        logits = logits.masked_fill(~outputs.to(logits.device), -torch.inf)
    return logits.softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))


def _input_of(batch: Any) -> Tensor:
    x = batch[0] if isinstance(batch, tuple | list) else batch
    if not isinstance(x, Tensor):
        raise TypeError(f"a batch must be a tensor, or a tuple that begins with one, got {type(x).__name__}")
    return x
