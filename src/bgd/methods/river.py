"""river's classifiers as learners, for comparisons on streams: ``method = "bgd.methods.river:RiverLearner"``."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from bgd.data.extras import needs_extra
from bgd.methods.common.outputs import Outputs
from bgd.methods.common.types import MethodError
from bgd.scenarios.types import Batch, Knowledge


class RiverLearner:
    """A classifier of river, fed with the flattened inputs as x0, x1, ...; the network of the run is not used.

    river has no format for its models but pickle, which this package never reads. So the state is what the model has
    learnt from, in order, and restoring it learns again: exact, but as long as the stream.

    Args:
        model: module and class below ``river``, such as "forest.ARFClassifier". A binary one is put into one-vs-rest.
        arguments: of the class.
        seed: of the class, where it has one.

    >>> from bgd.scenarios.heads import Heads
    >>> learner = RiverLearner(nn.Identity(), Outputs(Heads(2, ((0, 1),))), model="naive_bayes.GaussianNB")
    >>> x, y = torch.tensor([[-1.0], [1.0], [-2.0], [2.0]]), torch.tensor([0, 1, 0, 1])
    >>> learner.observe(x, y), learner.predict(torch.tensor([[1.5]])).argmax(1).item()
    (0.693147..., 1)
    """

    needs: Knowledge = Knowledge.NOTHING
    joint: ClassVar[bool] = False
    upper_bound: ClassVar[bool] = False
    train_size_per_task: ClassVar[bool] = False

    def __init__(
        self,
        net: nn.Module,  # noqa: ARG002, every method gets one
        outputs: Outputs,
        *,
        model: str = "linear_model.LogisticRegression",
        arguments: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        self.outputs, self.classes = outputs, outputs.heads.outputs
        self.settings = (model, dict(arguments or {}), seed)
        self.model = make_model(*self.settings, classes=self.classes)
        self.batches: list[tuple[Tensor, Tensor]] = []
        self._predicted: tuple[Tensor, Tensor] | None = None

    def observe(self, x: Tensor, y: Tensor, task: int | Tensor | None = None) -> float:
        """Learn the examples one after the other; returns the mean loss before that."""
        same = self._predicted is not None and self._predicted[0] is x  # a stream that tests first has just asked
        scores = self._predicted[1] if same and self._predicted else self.predict(x, task)
        loss = nn.functional.cross_entropy(scores.clamp(min=-30), y).item()
        self._learn(x, y)
        self.batches.append((x.clone(), y.clone()))
        self._predicted = None
        return loss

    def predict(self, x: Tensor, task: int | Tensor | None = None) -> Tensor:
        """Log-probabilities; equal ones as long as the model knows no class."""
        scores = torch.zeros(len(x), self.classes)
        for row, features in zip(scores, _rows(x), strict=True):
            known = self.model.predict_proba_one(features)
            p = torch.tensor([float(known.get(label, 0.0)) for label in range(self.classes)])
            if p.sum() > 0:
                row[:] = p.log()
        self._predicted = (x, scores)
        return self.outputs.restrict(scores, task)

    def end_task(self, batches: Iterable[Batch] = ()) -> None:
        """Nothing to do at a boundary."""

    def state_dict(self) -> dict[str, Any]:
        """What was learnt from, in order."""
        return {"x": [x for x, _ in self.batches], "y": [y for _, y in self.batches]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Learn all of it again."""
        if set(state) != {"x", "y"}:
            raise MethodError(f"this is not the state of a RiverLearner: it holds {sorted(state)}, but x, y are needed")
        self.model = make_model(*self.settings, classes=self.classes)
        self.batches = list(zip(state["x"], state["y"], strict=True))
        for x, y in self.batches:
            self.predict(x)  # a tree may choose its leaves' predictor by how often it was right
            self._learn(x, y)

    def _learn(self, x: Tensor, y: Tensor) -> None:
        for features, label in zip(_rows(x), y.tolist(), strict=True):
            self.model.learn_one(features, label)


def make_model(model: str, arguments: Mapping[str, Any], seed: int, *, classes: int) -> Any:
    """A fresh classifier of river.

    >>> make_model("naive_bayes.GaussianNB", {}, 0, classes=2)
    GaussianNB ()
    >>> make_model("naive_bayes.Gaussian", {}, 0, classes=2)
    Traceback (most recent call last):
    bgd.methods.common.types.MethodError: model='naive_bayes.Gaussian': river has no such class, ...
    """
    with needs_extra("river", "streams"):
        from river import multiclass
    module, _, name = model.rpartition(".")
    try:
        kind = getattr(importlib.import_module(f"river.{module}"), name)
        takes_seed = "seed" in inspect.signature(kind).parameters
        made = kind(**({"seed": seed} if takes_seed else {}) | dict(arguments))
    except (ImportError, AttributeError):
        raise MethodError(f"model={model!r}: river has no such class, as it has forest.ARFClassifier") from None
    except TypeError as error:
        raise MethodError(f"model={model!r} with {dict(arguments)}: {error}") from error
    return made if made._multiclass or classes == 2 else multiclass.OneVsRestClassifier(made)


def _rows(x: Tensor) -> list[dict[str, float]]:
    names = [f"x{i}" for i in range(x[0].numel())]
    return [dict(zip(names, values, strict=True)) for values in x.flatten(1).tolist()]
