"""Predictions of a posterior, with their uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.func import functional_call

from bgd.optim.base import PosteriorOptimizer
from bgd.optim.checking import check_arguments, check_outputs
from bgd.validation import check_choice

Inference = Literal["map", "mc", "vote", "mean_softmax"]
INFERENCES: tuple[Inference, ...] = get_args(Inference)
Kind = Literal["classes", "labels", "values"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def entropy(probs: Tensor) -> Tensor:
    """Entropy in nats over the last dimension: - sum_c p_c log p_c.

    >>> entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor([0.6931, 0.0000])
    """
    terms: Tensor = torch.special.entr(probs)
    return terms.sum(-1)


@dataclass(frozen=True)
class Prediction:
    """Predictions of the mean network and of S sampled ones for N inputs.

    Attributes:
        draws: (S, N, ...): what each sampled network predicts: probabilities, or values of a regression.
        at_mean: (N, ...): what the mean network predicts.
        kind: ``"classes"``, ``"labels"`` or ``"values"``, see :func:`predict`.
    """

    draws: Tensor
    at_mean: Tensor
    kind: Kind = "classes"

    def __len__(self) -> int:
        return len(self.at_mean)

    def __repr__(self) -> str:
        sizes = "x".join(map(str, self.at_mean.shape[1:])) or "1"
        return f"Prediction({len(self)} inputs, {sizes} {self.kind}, {len(self.draws)} sampled networks)"

    @property
    def mean(self) -> Tensor:
        """(N, ...): mean over the sampled networks; the mean network's own where there are none."""
        return self.draws.mean(0) if len(self.draws) else self.at_mean

    @property
    def spread(self) -> Tensor:
        """(N, ...): std over the sampled networks, which is the uncertainty about the network; 0 for fewer than two."""
        return self.draws.std(0) if len(self.draws) > 1 else torch.zeros_like(self.at_mean)

    @property
    def probs(self) -> Tensor:
        """(N, C): mean probabilities."""
        self._need_probabilities("probs")
        return self.mean

    @property
    def votes(self) -> Tensor:
        """(N, C): how many sampled networks choose a class."""
        self._need_classes("votes")
        return torch.nn.functional.one_hot(self.sample_labels, self.at_mean.shape[-1]).sum(0).to(self.at_mean.dtype)

    @property
    def sample_labels(self) -> Tensor:
        """(S, N): what each sampled network chooses; for several labels (S, N, L), 0 or 1."""
        return self._chosen(self.draws)

    @property
    def labels(self) -> Tensor:
        """(N,): the class of the largest probability; for several labels (N, L), those above one half."""
        return self._chosen(self.probs)

    @property
    def entropy(self) -> Tensor:
        """(N,): predictive entropy H[mean_s p_s], the whole uncertainty; for several labels (N, L), of each."""
        self._need_probabilities("entropy")
        return self._entropy(self.mean)

    @property
    def expected_entropy(self) -> Tensor:
        """(N,): mean_s H[p_s], the part of the uncertainty that the sampled networks agree on."""
        self._need_probabilities("expected_entropy")
        return self._entropy(self.draws).mean(0) if len(self.draws) else self._entropy(self.at_mean)

    @property
    def mutual_information(self) -> Tensor:
        """(N,): H[mean_s p_s] - mean_s H[p_s], the part of the uncertainty that more data could remove."""
        return (self.entropy - self.expected_entropy).clamp(min=0)

    def labels_by(self, method: Inference) -> Tensor:
        """(N,) the chosen classes; for ``"mc"`` (S, N), one choice per sampled network; for labels (N, L) or (S, N, L).

        A tied vote goes to the class with the larger mean probability.
        """
        check_choice("method", method, INFERENCES)
        if method == "map":
            return self._chosen(self.at_mean)
        if method == "mc":
            return self.sample_labels
        if method == "vote" and self.kind == "labels" and len(self.draws):
            return (
                (self.sample_labels + self.probs / len(self.draws)).mean(0) > 0.5 * (1 + 1 / len(self.draws))
            ).long()
        if method == "vote" and self.kind == "classes":
            return (self.votes + self.probs / 2).argmax(-1)
        return self.labels

    def accuracy(self, labels: Tensor, method: Inference = "mean_softmax") -> float:
        """Fraction of right answers; ``"mc"`` is the paper's: the mean accuracy of the single sampled networks.

        >>> p = Prediction(torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.7, 0.3], [0.6, 0.4]]]), torch.eye(2))
        >>> p.accuracy(torch.tensor([0, 1])), p.accuracy(torch.tensor([0, 1]), "mc")
        (1.0, 0.75)
        """
        self._need_probabilities("accuracy")
        chosen = self.labels_by(method)
        shape = self._chosen(self.at_mean).shape
        if labels.shape != shape and {labels.shape, shape} != {(len(self),), (len(self), 1)}:
            raise ValueError(
                f"{len(self)} predictions need {len(self)} labels of shape {tuple(shape)}, "
                f"got a tensor {tuple(labels.shape)}"
            )
        if chosen.numel() == 0:
            raise ValueError(f"no accuracy of nothing: there are no predictions by {method!r}")
        return float((chosen == labels.to(chosen.device).reshape(shape)).float().mean())

    def _chosen(self, probs: Tensor) -> Tensor:
        self._need_probabilities("labels")
        return probs.argmax(-1) if self.kind == "classes" else (probs > 0.5).long()

    def _entropy(self, probs: Tensor) -> Tensor:
        return entropy(probs if self.kind == "classes" else torch.stack([probs, 1 - probs], -1))

    def _need_probabilities(self, name: str) -> None:
        if self.kind == "values":
            raise ValueError(f'{name} needs probabilities, and kind="values" has none: use mean and spread')

    def _need_classes(self, name: str) -> None:
        if self.kind != "classes":
            raise ValueError(f'{name} needs kind="classes", and this prediction has kind={self.kind!r}')


@torch.no_grad()
def predict(
    model: nn.Module,
    optimizer: PosteriorOptimizer | None,
    inputs: Any,
    samples: int = 10,
    outputs: Tensor | None = None,
    *,
    kind: Kind = "classes",
    forward: Callable[[Callable[..., Any], Any], Tensor] | None = None,
) -> Prediction:
    """Predict with the mean network and with ``samples`` networks sampled from the posterior.

    The model runs in evaluation mode and is left as it was. All inputs are seen by the same sampled networks.

    Args:
        model: any module.
        optimizer: its posterior; None for a model without one, which has only the prediction of its weights.
        inputs: one batch, or a DataLoader (any iterable of batches but a tuple). A batch is a tensor, a mapping, whose
            items are passed by keywords, or a tuple or list, whose first item is the input: a tensor, a mapping, or a
            tuple of several arguments.
        samples: S, the number of sampled networks; 0 for the mean network only.
        outputs: a mask (C,) of the outputs to choose from, e.g. the heads of a known task; None for all.
        kind: what the model returns: logits of ``"classes"`` (N, C); logits of yes or no ``"labels"`` (N,), (N, 1) or
            (N, L); or the ``"values"`` of a regression, of any shape.
            Of an output with ``logits``, as Hugging Face's models have, these are taken.
        forward: from a network and a batch to that output, for models that are called in another way:
            ``forward=lambda net, batch: net(batch["ids"], mask=batch["mask"]).logits``.

    Example:
        >>> from bgd import BGD
        >>> model = nn.Linear(3, 2)
        >>> optimizer = BGD(model.parameters(), std_init=0.1)
        >>> p = predict(model, optimizer, torch.randn(5, 3), samples=10)
        >>> p.probs.shape, p.entropy.shape, bool((p.mutual_information >= 0).all())
        (torch.Size([5, 2]), torch.Size([5]), True)
        >>> predict(model, optimizer, torch.randn(5, 3), kind="values").draws.shape
        torch.Size([10, 5, 2])
    """
    check_choice("kind", kind, KINDS)
    check_arguments(model, optimizer, inputs, samples, forward)
    check_outputs(kind, outputs)
    batches = [inputs] if isinstance(inputs, Tensor | Mapping | tuple) else inputs
    call, drawn = forward or _forward, optimizer.samples_drawn if optimizer is not None else 0
    try:
        weights = sampled_networks(model, optimizer, samples) if optimizer is not None and samples else []
        with evaluating(model):
            parts = [_predict_batch(model, weights, batch, call, kind, outputs) for batch in batches]
        if not parts:
            raise ValueError("there are no inputs to predict: the iterable is empty")
    except BaseException:
        if optimizer is not None:  # the next prediction draws the networks that this one would have
            optimizer.samples_drawn = drawn
        raise
    draws, at_mean = zip(*parts, strict=True)
    return Prediction(torch.cat(draws, dim=1), torch.cat(at_mean), kind)


def sampled_networks(model: nn.Module, optimizer: PosteriorOptimizer, samples: int) -> list[dict[str, Tensor]]:
    """The weights of ``samples`` networks, by their names in the model, for ``torch.func.functional_call``.

    >>> from bgd import BGD
    >>> model = nn.Linear(3, 2)
    >>> [list(network) for network in sampled_networks(model, BGD(model.parameters()), 2)]
    [['weight', 'bias'], ['weight', 'bias']]
    """
    names: dict[Tensor, str] = {p: name for name, p in model.named_parameters()}
    if not any(p in optimizer.state for p in names):
        raise ValueError("the optimizer holds none of the model's parameters: is it the optimizer of another model?")
    sampled = optimizer.sample_weights(samples)
    named = {names[p]: stacked for p, stacked in sampled.items() if p in names}
    return [{name: stacked[s] for name, stacked in named.items()} for s in range(samples)]


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
    model: nn.Module,
    weights: list[dict[str, Tensor]],
    batch: Any,
    forward: Callable[[Callable[..., Any], Any], Tensor],
    kind: Kind,
    outputs: Tensor | None,
) -> tuple[Tensor, Tensor]:
    def network(sampled: dict[str, Tensor]) -> Callable[..., Any]:
        return lambda *args, **kwargs: functional_call(model, sampled, args, kwargs)

    at_mean = _predicted(forward(model, batch), kind, outputs)
    draws = [_predicted(forward(network(sampled), batch), kind, outputs) for sampled in weights]
    return torch.stack(draws) if draws else at_mean.new_empty(0, *at_mean.shape), at_mean


def _predicted(output: Any, kind: Kind, outputs: Tensor | None) -> Tensor:
    """What a network's output says: probabilities, or values, in at least single precision."""
    if hasattr(output, "logits"):
        output = output.logits
    if not isinstance(output, Tensor):
        raise TypeError(f"the model returned {type(output).__name__}, not a tensor: say which part with forward=...")
    output = output.to(torch.promote_types(output.dtype, torch.float32))
    found: Tensor = output
    if kind == "values":
        return found
    if kind == "labels":
        return found.sigmoid()
    if output.dim() != 2:
        raise ValueError(
            f'kind="classes" needs logits (N, C), got {tuple(output.shape)}: see kind="labels" and kind="values", or '
            "make an example of each position with forward=..."
        )
    if output.shape[1] < 2:
        raise ValueError('kind="classes" needs the logits of at least two classes: one logit is kind="labels"')
    if outputs is not None:
        if len(outputs) != output.shape[1]:
            raise ValueError(f"outputs masks {len(outputs)} classes, but the model has {output.shape[1]}")
        found = found.masked_fill(~outputs.to(found.device), -torch.inf)
    return found.softmax(-1)


def _forward(net: Callable[..., Any], batch: Any) -> Any:
    """A tensor or the first item of a tuple as the only argument, a dict as keywords."""
    x = batch[0] if isinstance(batch, tuple | list) and batch else batch
    if isinstance(x, Mapping):
        return net(**x)
    if isinstance(x, tuple) and x:
        return net(*x)
    if not isinstance(x, Tensor):
        raise TypeError(f"a batch must be a tensor, a dict, or a tuple that begins with one, got {type(x).__name__}")
    return net(x)
