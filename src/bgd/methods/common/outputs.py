"""Which outputs of the network the loss and the prediction run over."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from bgd.losses import labels_present
from bgd.methods.common.likelihoods import Categorical, Likelihood
from bgd.methods.common.types import MethodError
from bgd.scenarios.heads import Heads
from bgd.validation import check_choice

Over = Literal["all", "task", "seen", "batch"]
"""The outputs of the training loss: all of them; the given task's head; the labels seen so far (as Hsu et
al. in class learning); the labels of the batch (the labels trick)."""


class Outputs:
    """The output layer as a learner sees it: its heads, its loss, and the labels it has met.

    Args:
        heads: which outputs belong to which task.
        over: which outputs the training loss runs over.
        likelihood: what the scores mean; :class:`~bgd.methods.common.likelihoods.Categorical` by default.

    >>> outputs = Outputs(Heads(4, ((0, 1), (2, 3))), over="task")
    >>> outputs.restrict(torch.zeros(1, 4), task=1)
    tensor([[-inf, -inf, 0., 0.]])
    >>> outputs.loss(torch.zeros(1, 4), torch.tensor([2]), task=1).exp()
    tensor(2.)
    """

    def __init__(self, heads: Heads, over: Over = "all", likelihood: Likelihood | None = None) -> None:
        check_choice("loss_over", over, get_args(Over))
        self.heads = heads
        self.over = over
        self.likelihood = Categorical() if likelihood is None else likelihood
        if over != "all" and not isinstance(self.likelihood, Categorical):
            raise MethodError(f"loss_over={over!r} is for classification; use 'all' with {self.likelihood!r}")
        self.seen = torch.zeros(heads.outputs, dtype=torch.bool)  # labels met so far
        self.current = torch.zeros(heads.outputs, dtype=torch.bool)  # labels met since the last boundary
        self._of_task = torch.zeros(len(heads.tasks), heads.outputs, dtype=torch.bool)
        for t, outputs in enumerate(heads.tasks):
            self._of_task[t, list(outputs)] = True

    def to(self, device: torch.device) -> Outputs:
        """Keep the masks where the network is; returns itself."""
        self.seen, self.current, self._of_task = (m.to(device) for m in (self.seen, self.current, self._of_task))
        return self

    def note(self, y: Tensor) -> None:
        """Remember the labels of a batch, once it is clear that the network has outputs for them."""
        if not isinstance(self.likelihood, Categorical):
            return
        low, high = (int(v) for v in y.aminmax()) if len(y) else (0, 0)
        if low < 0 or high >= self.heads.outputs:
            raise MethodError(
                f"label {low if low < 0 else high} is outside the network's {self.heads.outputs} outputs "
                f"(0 to {self.heads.outputs - 1}): map the labels, or give the network more outputs"
            )
        self.seen[y] = True
        self.current[y] = True

    def forget_current(self) -> None:
        """A boundary: no label of the next task has been met yet."""
        self.current.zero_()

    def mask(self, y: Tensor, task: int | Tensor | None = None) -> Tensor | None:
        """The outputs of the training loss for a batch, (outputs,) or (B, outputs); None for all."""
        if self.over == "all":
            return None
        if self.over == "seen":
            return self.seen
        if self.over == "batch":
            return labels_present(y, self.heads.outputs)
        mask = self._head(task)
        inside = mask[y] if mask.ndim == 1 else mask.gather(1, y[:, None])
        if not inside.all():
            label = int(y[~inside.flatten()][0])
            raise MethodError(f"label {label} is not in the head of its task {task}, outputs {self._describe(task)}")
        return mask

    def consolidation_mask(self, task: int | Tensor | None = None) -> Tensor | None:
        """The outputs that matter to a whole task: as ``mask``, whatever the batch size.

        With the labels trick these are the labels met since the last boundary: with the labels of a batch
        instead, a small batch would make the importance of every weight vanish (a single label has no rival).
        """
        if self.over == "all":
            return None
        if self.over == "task":
            return self._head(task)
        met = self.seen if self.over == "seen" else self.current
        if not met.any():
            raise MethodError(
                "no label has been met since the start or the last boundary, so nothing says which outputs matter: "
                "observe the task before it ends, or hand its labels to outputs.note"
            )
        return met

    def loss(self, scores: Tensor, y: Tensor, task: int | Tensor | None = None, reduction: str = "mean") -> Tensor:
        """The likelihood's loss over the chosen outputs; ``reduction`` is "mean", "sum" or "none"."""
        losses = self.likelihood.loss(masked(scores, self.mask(y, task)), y)
        if reduction == "none":
            return losses
        return losses.sum() if reduction == "sum" else losses.mean()

    def restrict(self, scores: Tensor, task: int | Tensor | None = None) -> Tensor:
        """Scores for prediction: where a task is given, the outputs outside its head are -inf."""
        return scores if task is None else masked(scores, self._head(task))

    def average(self, scores: Tensor) -> Tensor:
        """One prediction from draws (draws, B, outputs): the log of their mean probability, or a regression's mean.

        >>> Outputs(Heads(2, ((0, 1),))).average(torch.zeros(3, 1, 2)).exp()
        tensor([[0.5000, 0.5000]])
        """
        if not isinstance(self.likelihood, Categorical):
            return scores.mean(dim=0)
        return torch.logsumexp(scores.log_softmax(dim=-1), dim=0) - math.log(len(scores))

    def groups(self, among: Tensor) -> list[Tensor]:
        """The outputs marked in ``among``, cut into those that compete in one softmax."""
        if self.over != "task":
            return [among.nonzero()[:, 0]] if among.any() else []
        heads = [torch.tensor(h, device=among.device) for h in dict.fromkeys(self.heads.tasks)]
        return [h for h in heads if among[h].any()]

    def state_dict(self) -> dict[str, Any]:
        """The labels met."""
        return {"seen": self.seen, "current": self.current}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the labels met."""
        self.seen.copy_(state["seen"])
        self.current.copy_(state["current"])

    def _head(self, task: int | Tensor | None) -> Tensor:
        if task is None:
            raise MethodError("loss_over='task' needs the task of every batch; use 'all', 'seen' or 'batch'")
        low, high = (int(task), int(task)) if isinstance(task, int) else (int(task.min()), int(task.max()))
        if low < 0 or high >= len(self._of_task):
            raise MethodError(f"task {low if low < 0 else high} has no head: there are {len(self._of_task)} tasks")
        return self._of_task[task]

    def _describe(self, task: int | Tensor | None) -> str:
        return str(self.heads.tasks[task]) if isinstance(task, int) else "of mixed tasks"


def masked(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Scores with the outputs outside the mask at -inf: a softmax gives them no weight, and no gradient.

    >>> masked(torch.zeros(1, 2), torch.tensor([True, False]))
    tensor([[0., -inf]])
    """
    return scores if mask is None else scores.masked_fill(~mask, -torch.inf)


def check_outputs(net: nn.Module, scores: Tensor, heads: Heads) -> None:
    """Refuse a network whose output layer does not match the heads.

    >>> check_outputs(nn.Linear(2, 3), torch.zeros(1, 3), Heads(4, ((0, 1), (2, 3))))
    Traceback (most recent call last):
    bgd.methods.common.types.MethodError: Linear gave scores of shape (1, 3), but the heads have 4 outputs
    """
    if scores.ndim != 2 or scores.shape[1] != heads.outputs:
        raise MethodError(
            f"{type(net).__name__} gave scores of shape {tuple(scores.shape)}, "
            f"but the heads have {heads.outputs} outputs"
        )
