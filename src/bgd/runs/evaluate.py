"""Evaluate a learner: accuracies by every inference method, and the stds of its posterior."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from bgd.inference import INFERENCES, Inference, Prediction
from bgd.methods.common.base import Base
from bgd.methods.common.posterior import PosteriorLearner
from bgd.methods.common.types import Learner
from bgd.optim.base import PosteriorOptimizer
from bgd.runs.calibration import Tests
from bgd.scenarios import Batch

EDGES: list[float] = [float(f"{edge:.6g}") for edge in np.logspace(-6, 1, 337)]
"""Of std histograms: 48 bins a decade, each 5 % wide."""


@runtime_checkable
class Posterior(Protocol):
    """A learner that can sample networks."""

    def predict_samples(self, x: Tensor, samples: int, task: int | Tensor | None = None) -> Tensor:
        """The scores of sampled networks, (samples, B, outputs): the same networks at every call."""


def available_inferences(learner: Learner, requested: Iterable[Inference] = INFERENCES) -> tuple[Inference, ...]:
    """Those inference methods that the learner has: all for a posterior, else only ``map``, its one network.

    >>> from bgd.methods import create
    >>> from bgd.scenarios import scenario, shared_heads
    >>> available_inferences(create("sgd", torch.nn.Linear(4, 2), shared_heads(1, 2), scenario("domain")))
    ('map',)
    """
    sampled = set(requested) if isinstance(learner, Posterior) else set()
    return tuple(inference for inference in INFERENCES if inference == "map" or inference in sampled)


@torch.no_grad()
def score(
    learner: Learner,
    batches: Iterable[Batch],
    inferences: Iterable[Inference],
    samples: int,
    device: str = "cpu",
    tests: Tests | None = None,
) -> tuple[dict[Inference, float], float]:
    """Accuracy by each inference method, and the mean cross-entropy of the mean network, without autograd.

    Its probabilities are added to ``tests``, where that is given and they are finite.

    >>> from bgd.methods import create
    >>> from bgd.scenarios import scenario, shared_heads
    >>> net = torch.nn.Linear(2, 2, bias=False)
    >>> net.weight.data = torch.eye(2)
    >>> learner = create("sgd", net, shared_heads(1, 2), scenario("domain"))
    >>> score(learner, [Batch(torch.eye(2), torch.tensor([0, 0]))], ["map"], samples=1)[0]
    {'map': 0.5}
    """
    inferences = tuple(inferences)
    right = dict.fromkeys(inferences, 0)
    loss, count = 0.0, 0
    for batch in batches:
        x, y = batch.x.to(device), batch.y.to(device)
        scores = learner.predict(x, batch.task)
        loss += float(cross_entropy(scores, y, reduction="sum"))
        count += len(y)
        if tests is not None and torch.isfinite(p := scores.softmax(-1)).all():
            tests.add(p.cpu(), y.cpu())
        if set(inferences) == {"map"}:
            right["map"] += int((scores.argmax(1) == y).sum())
            continue
        sampled = cast(Posterior, learner).predict_samples(x, samples, batch.task)
        prediction = Prediction(sampled.softmax(-1), scores.softmax(-1))
        for inference in inferences:
            right[inference] += int((prediction.labels_by(inference) == y).sum())
    # "mc" is the mean accuracy of the single networks: `samples` predictions for each label
    accuracies = {inference: n / (count * (samples if inference == "mc" else 1)) for inference, n in right.items()}
    return accuracies, loss / count


def stds(learner: Learner) -> Tensor | None:
    """The std of every weight in one row; None for a learner without a posterior.

    >>> from bgd.methods import create
    >>> from bgd.scenarios import scenario, shared_heads
    >>> bgd = create("bgd", torch.nn.Linear(2, 2), shared_heads(1, 2), scenario("domain"), std_init=0.5)
    >>> stds(bgd)
    tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000])
    """
    if isinstance(learner, PosteriorLearner):
        parts = list(learner.std().values())
    elif isinstance(learner, Base) and isinstance(learner.optimizer, PosteriorOptimizer):
        optimizer = learner.optimizer
        parts = [optimizer.state[p]["std"] for group in optimizer.param_groups for p in group["params"]]
    else:
        return None
    return torch.cat([part.detach().flatten().cpu() for part in parts])


def histogram(values: Tensor) -> dict[str, Any]:
    """Counts over those of ``EDGES`` that are needed; values beyond all edges are in the first or last bin.

    NaN is not counted.

    >>> h = histogram(torch.tensor([0.0, 1e-6, 99.0]))
    >>> sum(h["counts"]), h["counts"][0], h["counts"][-1], round(h["largest"])
    (3, 2, 1, 99)
    >>> histogram(torch.tensor([0.06, 0.06]))["counts"]
    [2]
    >>> histogram(torch.tensor([0.06, torch.nan]))["counts"], histogram(torch.tensor([torch.nan]))["counts"]
    ([1], [])
    """
    values = values[~values.isnan()]
    if not len(values):
        return {"edges": EDGES[:1], "counts": [], "smallest": np.nan, "largest": np.nan}
    inside = np.clip(values.double().numpy(), EDGES[0], np.nextafter(EDGES[-1], 0))
    counts, _ = np.histogram(inside, bins=EDGES)
    used = np.flatnonzero(counts)
    first, last = int(used[0]), int(used[-1]) + 1
    return {
        "edges": EDGES[first : last + 1],
        "counts": counts[first:last].tolist(),
        "smallest": float(values.min()),
        "largest": float(values.max()),
    }
