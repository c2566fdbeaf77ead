"""Learning without forgetting (Li & Hoiem, 2016)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from bgd.inference import evaluating
from bgd.methods.common.base import Base, optimizer_for
from bgd.methods.common.outputs import Outputs, masked
from bgd.methods.common.penalty import Weights
from bgd.methods.common.types import MethodError
from bgd.scenarios.types import Batch, Knowledge
from bgd.validation import check_choice, check_numbers


class LwF(Base):
    """Loss + coefficient x T^2 sum_h KL(softmax(teacher_h / T) || softmax(net_h / T)), mean over the batch.

    The teacher is the network at the end of the last task, applied to the new task's images: no old data is
    stored. h runs over the heads of old tasks where the task is given in testing; elsewhere the outputs of all
    labels of old tasks make one h. T^2 keeps the gradient's size independent of T.

    Args:
        lr: learning rate.
        coefficient: weight of the old outputs; 1 as Li & Hoiem (Hsu et al. published none).
        temperature: T; 2 as Li & Hoiem.
        optimizer: "sgd", "adam" or "adagrad".
        balance: in the t-th task, weight the batch's loss by 1 / t and the distillation by 1 - 1 / t, which is then the
            mean over old heads instead of their sum.
        distil_over: with one h, the outputs of the network's softmax: those of "old" labels, or of all labels "seen",
            where the teacher's probability of the new ones is 0. ``balance=True, distil_over="seen"`` is the LwF of
            van de Ven & Tolias (2018).

    >>> from bgd.scenarios.heads import Heads
    >>> LwF(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),)))).needs.name
    'BOUNDARIES'
    """

    needs = Knowledge.BOUNDARIES
    state_attributes: ClassVar[tuple[str, ...]] = ("teacher", "old_labels", "tasks_ended")

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        lr: float = 0.001,
        coefficient: float = 1.0,
        temperature: float = 2.0,
        optimizer: str = "adam",
        balance: bool = False,
        distil_over: Literal["old", "seen"] = "old",
    ) -> None:
        super().__init__(net, outputs, optimizer_for(net.parameters(), optimizer, lr))
        if not outputs.likelihood.classification:
            raise MethodError(
                f"LwF distils probabilities of labels, and {outputs.likelihood!r} has none: use another method"
            )
        if not temperature > 0:
            raise MethodError(f"temperature={temperature}: must be above 0")
        check_numbers(coefficient=coefficient)
        check_choice("distil_over", distil_over, ("old", "seen"))
        self.coefficient, self.temperature = coefficient, temperature
        self.balance, self.distil_over = balance, distil_over
        self.teacher: Weights = {}
        self.old_labels = torch.zeros_like(self.outputs.seen)
        self.tasks_ended = 0

    def loss(self, x: Tensor, y: Tensor, task: int | Tensor | None) -> Tensor:
        """The batch's loss, and the distance to the teacher on the old outputs."""
        scores = self.scores(x)
        loss = self.outputs.loss(scores, y, task)
        if not self.teacher:
            return loss
        new, old = 1.0, 1.0
        if self.balance:
            new, old = 1 / (self.tasks_ended + 1), self.tasks_ended / (self.tasks_ended + 1)
        return new * loss + old * self.coefficient * self.distillation(x, scores)

    def distillation(self, x: Tensor, scores: Tensor) -> Tensor:
        """T^2 sum_h KL(teacher_h || net_h) at temperature T; the mean over h with ``balance``."""
        with torch.no_grad(), evaluating(self.net):
            targets: Tensor = functional_call(self.net, self.teacher, (x,))
        total = scores.new_zeros(())
        groups = self.outputs.groups(self.old_labels)
        for group in groups:
            log_p = (targets[:, group] / self.temperature).log_softmax(1)
            log_q = (scores[:, group] / self.temperature).log_softmax(1)
            if self.distil_over == "seen" and self.outputs.over != "task":
                all_seen = masked(scores, self.outputs.seen) / self.temperature
                log_q = all_seen.log_softmax(1)[:, group]
            total = total + F.kl_div(log_q, log_p, reduction="batchmean", log_target=True)
        return total * self.temperature**2 / (max(len(groups), 1) if self.balance else 1)

    def end_task(self, batches: Iterable[Batch] = ()) -> None:
        """Make the current network the teacher of all labels seen so far."""
        if not self.outputs.seen.any():
            raise MethodError(
                "LwF has seen no label yet, so there is nothing to distil: observe the task before it ends, or pass "
                "its labels to outputs.add_labels"
            )
        tensors = (*self.net.named_parameters(), *self.net.named_buffers())  # tied weights only once
        self.teacher = {name: t.detach().clone() for name, t in tensors}
        self.old_labels = self.outputs.seen.clone()
        self.tasks_ended += 1
        super().end_task(batches)
