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
    """The output layer as a learner sees it: its heads, its loss, and the labels seen so far.

    Args:
        heads: which outputs belong to which task.
        over: which outputs the training loss runs over.
        likelihood: the loss; :class:`~bgd.methods.common.likelihoods.Categorical` by default.

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
        if over != "all" and not self.likelihood.classification:
            raise MethodError(f"loss_over={over!r} is for classification; use 'all' with {self.likelihood!r}")
        self.seen = torch.zeros(heads.outputs, dtype=torch.bool)  # labels of all batches so far
        self.current = torch.zeros(heads.outputs, dtype=torch.bool)  # labels since the last boundary
        self._task_masks = torch.zeros(len(heads.tasks), heads.outputs, dtype=torch.bool)
        for t, outputs in enumerate(heads.tasks):
            self._task_masks[t, list(outputs)] = True

    def to(self, device: torch.device) -> Outputs:
        """Move the masks to the device of the network; returns itself."""
        self.seen, self.current, self._task_masks = (m.to(device) for m in (self.seen, self.current, self._task_masks))
        return self

    def add_labels(self, y: Tensor) -> None:
        """Record the labels of a batch as seen, after checking that the network has outputs for them."""
        if not self.likelihood.classification:
            return
        low, high = (int(v) for v in y.aminmax()) if len(y) else (0, 0)
        if low < 0 or high >= self.heads.outputs:
            raise MethodError(
                f"label {low if low < 0 else high} is outside the network's {self.heads.outputs} outputs "
                f"(0 to {self.heads.outputs - 1}): map the labels, or give the network more outputs"
            )
        self.seen[y] = True
        self.current[y] = True

    def clear_current(self) -> None:
        """A boundary: no label of the next task has been seen yet."""
        self.current.zero_()

    def mask(self, y: Tensor, task: int | Tensor | None = None) -> Tensor | None:
        """The outputs of the training loss for a batch, (outputs,) or (B, outputs); None for all."""
        if self.over == "all":
            return None
        if self.over == "seen":
            return self.seen
        if self.over == "batch":
            return labels_present(y, self.heads.outputs)
        mask = self._head_mask(task)
        inside = mask[y] if mask.ndim == 1 else mask.gather(1, y[:, None])
        if not inside.all():
            label = int(y[~inside.flatten()][0])
            raise MethodError(
                f"label {label} is not in the head of its task {task}, outputs {self._describe_head(task)}"
            )
        return mask

    def consolidation_mask(self, task: int | Tensor | None = None) -> Tensor | None:
        """The outputs that matter to a whole task: as ``mask``, whatever the batch size.

        With the labels trick these are the labels since the last boundary: with the labels of a batch instead, a
        small batch would make the importance of every weight vanish (a softmax over one label is constant).
        """
        if self.over == "all":
            return None
        if self.over == "task":
            return self._head_mask(task)
        labels = self.seen if self.over == "seen" else self.current
        if not labels.any():
            raise MethodError(
                "no label has been seen since the start or the last boundary, so it is unknown which outputs matter: "
                "observe the task before it ends, or pass its labels to outputs.add_labels"
            )
        return labels

    def loss(self, scores: Tensor, y: Tensor, task: int | Tensor | None = None, reduction: str = "mean") -> Tensor:
        """The likelihood's loss over the chosen outputs; ``reduction`` is "mean", "sum" or "none"."""
        losses = self.likelihood.loss(masked(scores, self.mask(y, task)), y)
        if reduction == "none":
            return losses
        return losses.sum() if reduction == "sum" else losses.mean()

    def restrict(self, scores: Tensor, task: int | Tensor | None = None) -> Tensor:
        """Scores for prediction: where a task is given, the outputs outside its head are -inf."""
        return scores if task is None else masked(scores, self._head_mask(task))

    def average(self, scores: Tensor) -> Tensor:
        """One prediction from sampled scores (samples, B, outputs): the log of the mean probability, or a plain mean.

        >>> Outputs(Heads(2, ((0, 1),))).average(torch.zeros(3, 1, 2)).exp()
        tensor([[0.5000, 0.5000]])
        """
        if not self.likelihood.classification:
            return scores.mean(dim=0)
        return torch.logsumexp(scores.log_softmax(dim=-1), dim=0) - math.log(len(scores))

    def groups(self, among: Tensor) -> list[Tensor]:
        """The outputs marked in ``among``, grouped by the softmax in which they compete."""
        if self.over != "task":
            return [among.nonzero()[:, 0]] if among.any() else []
        heads = [torch.tensor(h, device=among.device) for h in dict.fromkeys(self.heads.tasks)]
        return [h for h in heads if among[h].any()]

    def state_dict(self) -> dict[str, Any]:
        """The labels seen."""
        return {"seen": self.seen, "current": self.current}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the labels seen."""
        self.seen.copy_(state["seen"])
        self.current.copy_(state["current"])

    def _head_mask(self, task: int | Tensor | None) -> Tensor:
        if task is None:
            raise MethodError("loss_over='task' needs the task of every batch; use 'all', 'seen' or 'batch'")
        low, high = (int(task), int(task)) if isinstance(task, int) else (int(task.min()), int(task.max()))
        if low < 0 or high >= len(self._task_masks):
            raise MethodError(f"task {low if low < 0 else high} has no head: there are {len(self._task_masks)} tasks")
        return self._task_masks[task]

    def _describe_head(self, task: int | Tensor | None) -> str:
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
