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
from bgd.methods.common.likelihoods import Categorical
from bgd.methods.common.outputs import Outputs, masked
from bgd.methods.common.penalty import Weights
from bgd.methods.common.types import MethodError
from bgd.scenarios.types import Batch, Knowledge
from bgd.validation import check_choice, check_numbers


class LwF(Base):
    """Loss + coefficient x T^2 sum_h KL(softmax(teacher_h / T) || softmax(net_h / T)), mean over the batch.

    The teacher is the network at the end of the last task, and looks at the new task's images: no old data is
    kept. h runs over the heads of old tasks where the task is given in testing; elsewhere the outputs of all
    labels met in old tasks make one h. T^2 keeps the gradient's size independent of T.

    Args:
        net: any module that maps (B, ...) to scores (B, outputs).
        outputs: which outputs the loss runs over.
        lr: learning rate.
        coefficient: weight of the old outputs; 1 as Li & Hoiem (Hsu et al. published none).
        temperature: T; 2 as Li & Hoiem.
        optimizer: "sgd", "adam" or "adagrad".
        balance: in the t-th task, weigh the batch's loss by 1 / t and the distillation by 1 - 1 / t, in which old heads
            count by their mean instead of their sum.
        distil_over: with one h, the outputs of the network's softmax: those of "old" labels, or of all labels "seen",
            where the teacher gives the new ones no probability. ``balance=True, distil_over="seen"`` is the LwF of
            van de Ven & Tolias (2018).

    >>> from bgd.scenarios.heads import Heads
    >>> LwF(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),)))).needs.name
    'BOUNDARIES'
    """

    needs = Knowledge.BOUNDARIES
    state_attributes: ClassVar[tuple[str, ...]] = ("teacher", "old", "ended")

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
        if not isinstance(outputs.likelihood, Categorical):
            raise MethodError(f"LwF distils probabilities of labels, and {outputs.likelihood!r} has none: use another")
        if not temperature > 0:
            raise MethodError(f"temperature={temperature}: must be above 0")
        check_numbers(coefficient=coefficient)
        check_choice("distil_over", distil_over, ("old", "seen"))
        self.coefficient, self.temperature = coefficient, temperature
        self.balance, self.distil_over = balance, distil_over
        self.teacher: Weights = {}
        self.old = torch.zeros_like(self.outputs.seen)
        self.ended = 0  # tasks

    def loss(self, x: Tensor, y: Tensor, task: int | Tensor | None) -> Tensor:
        """The batch's loss, and the distance to the teacher on the old outputs."""
        scores = self.scores(x)
        loss = self.outputs.loss(scores, y, task)
        if not self.teacher:
            return loss
        new, old = (1 / (self.ended + 1), self.ended / (self.ended + 1)) if self.balance else (1.0, 1.0)
        return new * loss + old * self.coefficient * self.distillation(x, scores)

    def distillation(self, x: Tensor, scores: Tensor) -> Tensor:
        """T^2 sum_h KL(teacher_h || net_h) at temperature T; the mean over h where the parts are balanced."""
        with torch.no_grad(), evaluating(self.net):
            targets: Tensor = functional_call(self.net, self.teacher, (x,))
        total = scores.new_zeros(())
        groups = self.outputs.groups(self.old)
        for group in groups:
            log_p = (targets[:, group] / self.temperature).log_softmax(1)
            log_q = (scores[:, group] / self.temperature).log_softmax(1)
            if self.distil_over == "seen" and self.outputs.over != "task":
                everything = masked(scores, self.outputs.seen) / self.temperature
                log_q = everything.log_softmax(1)[:, group]
            total = total + F.kl_div(log_q, log_p, reduction="batchmean", log_target=True)
        return total * self.temperature**2 / (max(len(groups), 1) if self.balance else 1)

    def end_task(self, batches: Iterable[Batch] = ()) -> None:
        """The network of this moment becomes the teacher of all labels met so far."""
        if not self.outputs.seen.any():
            raise MethodError(
                "LwF has met no label yet, so there is nothing to distil: observe the task before it ends, or hand its "
                "labels to outputs.note"
            )
        tensors = (*self.net.named_parameters(), *self.net.named_buffers())  # tied weights once, every buffer
        self.teacher = {name: t.detach().clone() for name, t in tensors}
        self.old = self.outputs.seen.clone()
        self.ended += 1
        super().end_task(batches)
