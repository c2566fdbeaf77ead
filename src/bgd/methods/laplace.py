"""Laplace approximations of the posterior over weights (Ritter, Botev & Barber, 2018)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal, get_args

from torch import nn

from bgd.methods.common.base import Base, generator_for, optimizer_for
from bgd.methods.common.likelihoods import Label, check_label
from bgd.methods.common.outputs import Outputs
from bgd.methods.common.reservoir import Reservoir
from bgd.methods.common.variational import check_train_size
from bgd.methods.curvature.block_penalty import BlockPenalty
from bgd.methods.curvature.kronecker import Curvature
from bgd.methods.curvature.task_curvature import Samples, Shape, curvature_of, groups_of
from bgd.scenarios.types import Batch, Knowledge
from bgd.validation import check_choice, check_numbers, check_whole

Kind = Literal["ptl", "al", "ol"]
"""Per-task, approximate, or online Laplace."""

CHUNK = 256  # samples of an old task in one pass: as large as a batch, so that their patches fit into memory


class Laplace(Base):
    """Mean loss + R(theta) / N_t, R = 1/2 (theta - theta*)^T Lambda (theta - theta*): the old posterior is the prior.

    H_s(theta) is the curvature of the loss of task s, summed over its samples: Fisher information, of which the
    diagonal or one Kronecker product per layer is kept. N_t is the number of samples of the task being learnt, so that
    R and the loss weigh what they weigh in Bayes' rule. When task t ends, at theta_t:

    - "ptl", per-task Laplace: R <- R + coefficient / 2 (theta - theta_t)^T H_t(theta_t) (theta - theta_t). Each task
      keeps the place and the curvature of its own end, as in EWC.
    - "ol", online Laplace: Lambda <- Lambda + coefficient H_t(theta_t), theta* <- theta_t. One Gaussian: theta_t is a
      mode of loss and penalty together, and so the mean of the new one.
    - "al", approximate Laplace: Lambda <- coefficient sum_(s<=t) H_s(theta_t), theta* <- theta_t. As "ol", but with the
      curvature of *all* tasks at the newest mode: it has to look at old data, and keeps ``memory`` samples of a task.

    In a linear-Gaussian model with one layer, "ol" and "al" with Kronecker factors are the exact posterior after any
    number of tasks. "ptl" finds the exact mode of two tasks and misses that of the third: the place of the second task
    knows of the first already.

    Lambda is the exact sum over tasks. One Kronecker product per task is kept, and every step multiplies by each of
    them: for a long row of tasks the diagonal is far cheaper.

    Args:
        net: any module that maps (B, ...) to scores (B, outputs). Kronecker factors are for linear and convolution
            layers; BatchNorm gets a diagonal.
        outputs: which outputs the loss runs over.
        kind: "ptl", "al" or "ol".
        curvature: "diagonal" or "kronecker".
        coefficient: lambda of Ritter et al., on the curvature of each task; 1 is Bayes' rule. They tuned it. Ours with
            "ol" on LeNet, four image sets of 1,200, one seed: 10 of (1, 10, 100) for Kronecker factors, 100 of (1, 10,
            100, 1000) for the diagonal.
        train_size: N_t, the number of training samples of a task, or one number for each task.
        lr: learning rate. The gradient of R is stable under SGD only while lr x (largest eigenvalue of Lambda) < 2 N_t;
            Ritter et al. lowered the rate of SGD for large coefficients. Adam's steps are bounded.
        optimizer: "sgd", "adam" or "adagrad".
        fisher_label: "sampled" (one draw per sample, unbiased), "exact", "true" or "predicted".
        prior_precision: of a Gaussian prior around 0; 0 for none.
        memory: for "al", samples kept of each old task, drawn at random and weighed as the whole task; None for all.
            They are part of the learner's state.
        seed: of labels and memory.

    >>> from bgd.scenarios.heads import Heads
    >>> Laplace(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),))), train_size=1000).needs.name
    'BOUNDARIES'
    """

    needs = Knowledge.BOUNDARIES
    train_size_per_task = True
    state_attributes: ClassVar[tuple[str, ...]] = ("penalty", "generator", "ended", "past")

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        kind: Kind = "ol",
        curvature: Shape = "kronecker",
        coefficient: float = 1.0,
        train_size: int | list[int] | tuple[int, ...] | None = None,
        lr: float = 0.001,
        optimizer: str = "adam",
        fisher_label: Label = "sampled",
        prior_precision: float = 0.0,
        memory: int | None = 1000,
        seed: int = 0,
    ) -> None:
        super().__init__(net, outputs, optimizer_for(net.parameters(), optimizer, lr))
        check_choice("kind", kind, get_args(Kind))
        check_numbers(coefficient=coefficient, prior_precision=prior_precision)
        if memory is not None:
            check_whole(1, memory=memory)
        check_label(fisher_label, outputs.likelihood)
        self.train_size = check_train_size(train_size, "Laplace")
        self.kind, self.curvature, self.coefficient = kind, curvature, coefficient
        self.fisher_label, self.memory = fisher_label, memory
        self.penalty = BlockPenalty(groups_of(net, curvature), prior_precision)
        self.generator = generator_for(net, seed)
        self.past: list[dict[str, Any]] = []  # of "al": x, y, mask and size of each old task
        self.ended = 0  # tasks

    def before_step(self, batch: Batch) -> None:  # noqa: ARG002
        """Add the gradient of R / N_t."""
        self.penalty.add_gradient(1 / self.train_size[min(self.ended, len(self.train_size) - 1)])

    def end_task(self, batches: Iterable[Batch] = ()) -> None:
        """Measure the curvature of the task (of all tasks, for "al"), and let the posterior become the prior."""
        kept = Reservoir(self.memory, self.generator)
        newest, size = self._curvature(self._samples(batches, kept))
        self.penalty.move(keep=self.kind == "ptl")
        if self.kind == "al":
            self.penalty.forget()
            for old in self.past:
                again, count = self._curvature(Samples(old["x"], old["y"], old["mask"]).batches(CHUNK))
                self.penalty.grow(self._weighed(again, old["size"] / count))
            self.past.append({**kept.samples._asdict(), "size": size})
        self.penalty.grow(self._weighed(newest, 1.0))
        self.ended += 1
        super().end_task(batches)

    def _samples(self, batches: Iterable[Batch], kept: Reservoir) -> Iterator[Samples]:
        for batch in batches:
            samples = Samples(batch.x, batch.y, self.outputs.consolidation_mask(batch.task))
            if self.kind == "al":
                kept.add(samples)
            yield samples

    def _curvature(self, data: Iterable[Samples]) -> tuple[Curvature, int]:
        likelihood = self.outputs.likelihood
        return curvature_of(self.net, likelihood, data, self.curvature, self.fisher_label, self.generator)

    def _weighed(self, curvature: Curvature, weight: float) -> Curvature:
        return {name: block.scaled(self.coefficient * weight) for name, block in curvature.items()}
