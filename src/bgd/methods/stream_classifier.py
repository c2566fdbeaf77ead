"""The learner for live streams in comparisons: ``method = "bgd.methods.stream_classifier:StreamLearner"``."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from bgd.data.extras import needs_extra
from bgd.methods.common.outputs import Outputs
from bgd.methods.common.types import MethodError
from bgd.scenarios.types import Batch, Knowledge

if TYPE_CHECKING:
    from bgd.streams.estimators import StreamClassifier


class StreamLearner:
    """:class:`bgd.streams.StreamClassifier`, with no settings; the network of the run is not used.

    Its scores are the logarithms of its probabilities. Like a network it knows the number of classes from the start.

    Args:
        seed: of its random features.

    >>> from bgd.scenarios.heads import Heads
    >>> learner = StreamLearner(nn.Identity(), Outputs(Heads(2, ((0, 1),))))
    >>> x, y = torch.tensor([[-1.0], [1.0], [-2.0], [2.0]]).repeat(8, 1), torch.tensor([0, 1, 0, 1]).repeat(8)
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
        seed: int = 0,
    ) -> None:
        with needs_extra("scikit-learn"):
            from bgd.streams.estimators import StreamClassifier
        self.outputs, self.classes = outputs, np.arange(outputs.heads.outputs)
        self.estimator: StreamClassifier = StreamClassifier(random_state=seed)
        self.started = False
        self._predicted: tuple[Tensor, Tensor] | None = None

    def observe(self, x: Tensor, y: Tensor, task: int | Tensor | None = None) -> float:
        """Learn the batch; returns the mean loss before that."""
        same = self._predicted is not None and self._predicted[0] is x  # a stream that tests first has just asked
        scores = self._predicted[1] if same and self._predicted else self.predict(x, task)
        self._predicted = None
        loss = nn.functional.cross_entropy(scores, y).item()
        self.estimator.partial_fit(x.flatten(1).double().numpy(), y.numpy(), classes=self.classes)
        self.started = True
        return loss

    def predict(self, x: Tensor, task: int | Tensor | None = None) -> Tensor:
        """Log-probabilities; equal ones before the first batch."""
        scores = torch.zeros(len(x), len(self.classes))
        if self.started:
            p = self.estimator.predict_proba(x.flatten(1).double().numpy())
            scores = torch.from_numpy(np.log(np.maximum(p, 1e-30))).float()
        self._predicted = (x, scores)
        return self.outputs.restrict(scores, task)

    def end_task(self, batches: Iterable[Batch] = ()) -> None:
        """Nothing to do at a boundary."""

    def state_dict(self) -> dict[str, Any]:
        """The file that the estimator saves, as bytes."""
        if not self.started:
            return {"saved": None}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "learner"
            self.estimator.save(path)
            return {"saved": torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from such a file."""
        if set(state) != {"saved"}:
            raise MethodError(f"this is not the state of a StreamLearner: it holds {sorted(state)}, not 'saved'")
        self._predicted, self.started = None, state["saved"] is not None
        if self.started:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "learner"
                path.write_bytes(state["saved"].numpy().tobytes())
                self.estimator = type(self.estimator).load(path)
