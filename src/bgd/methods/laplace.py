"""Laplace approximations of the posterior over weights (Ritter, Botev & Barber, 2018)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal, get_args

from torch import nn

from bgd.methods.common.base import Base, generator_for, optimizer_for
from bgd.methods.common.likelihoods import Label, check_label
from bgd.methods.common.outputs import Outputs
from bgd.methods.common.train_size import check_train_size
from bgd.methods.curvature.block_penalty import BlockPenalty
from bgd.methods.curvature.blocks import Curvature
from bgd.methods.curvature.reservoir import Reservoir
from bgd.methods.curvature.task_curvature import Samples, Shape, measure_curvature, parameter_groups
from bgd.scenarios.types import Batch, Knowledge
from bgd.validation import check_choice, check_numbers, check_whole

Kind = Literal["ptl", "al", "ol"]
"""Per-task, approximate, or online Laplace."""

CHUNK = 256  # samples of an old task in one pass: a batch whose patches fit into memory


class Laplace(Base):
    """Mean loss + R(theta) / N_t, R = 1/2 (theta - theta*)^T Lambda (theta - theta*): the old posterior is the prior.

    H_s(theta) is the curvature of the loss of task s, summed over its samples: Fisher information, of which the
    diagonal or one Kronecker product per layer is stored. N_t is the number of samples of the current task, so that R
    and the loss have the weights of Bayes' rule. When task t ends, at theta_t:

    - "ptl", per-task Laplace: R <- R + coefficient / 2 (theta - theta_t)^T H_t(theta_t) (theta - theta_t). Each task
      keeps the weights and the curvature of its own end, as in EWC.
    - "ol", online Laplace: Lambda <- Lambda + coefficient H_t(theta_t), theta* <- theta_t. One Gaussian: theta_t is a
      mode of loss and penalty together, and so the mean of the new one.
    - "al", approximate Laplace: Lambda <- coefficient sum_(s<=t) H_s(theta_t), theta* <- theta_t. As "ol", but with the
      curvature of *all* tasks at the newest mode: it needs old data, and stores ``memory`` samples of a task.

    In a linear-Gaussian model with one layer, "ol" and "al" with Kronecker factors are the exact posterior after any
    number of tasks. "ptl" finds the exact mode of two tasks and misses that of the third: the weights at the end of
    the second task depend on the first already.

    Lambda is the exact sum over tasks. One Kronecker product per task is stored, and every step multiplies by each of
    them: for a long sequence of tasks the diagonal is far cheaper.

    Args:
        net: Kronecker factors are for linear and convolution layers; BatchNorm gets a diagonal.
        kind: "ptl", "al" or "ol".
        curvature: "diagonal" or "kronecker".
        coefficient: lambda of Ritter et al., on the curvature of each task; 1 is Bayes' rule. They tuned it. Ours with
            "ol" on LeNet, four image sets of 1,200, one seed: 10 of (1, 10, 100) for Kronecker factors, 100 of (1, 10,
            100, 1000) for the diagonal.
        train_size: N_t, the number of training samples of a task, or one number for each task.
        lr: learning rate. The gradient of R is stable under SGD only while lr x (largest eigenvalue of Lambda) < 2 N_t;
            Ritter et al. lowered the rate of SGD for large coefficients. Adam's steps are bounded.
        optimizer: "sgd", "adam" or "adagrad".
        fisher_label: "sampled" (one label per sample, unbiased), "exact", "true" or "predicted".
        prior_precision: of a Gaussian prior around 0; 0 for none.
        memory: for "al", samples stored of each old task, chosen at random and weighted as the whole task; None for
            all. They are part of the learner's state.
        seed: of labels and memory.

    >>> from bgd.scenarios.heads import Heads
    >>> Laplace(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),))), train_size=1000).needs.name
    'BOUNDARIES'
    """

    needs = Knowledge.BOUNDARIES
    train_size_per_task = True
    state_attributes: ClassVar[tuple[str, ...]] = ("penalty", "generator", "tasks_ended", "old_samples")

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
        self.penalty = BlockPenalty(parameter_groups(net, curvature), prior_precision)
        self.generator = generator_for(net, seed)
        self.old_samples: list[dict[str, Any]] = []  # of "al": x, y, mask and size of each old task
        self.tasks_ended = 0

    def before_step(self, batch: Batch) -> None:  # noqa: ARG002
        """Add the gradient of R / N_t."""
        self.penalty.add_gradient(1 / self.train_size[min(self.tasks_ended, len(self.train_size) - 1)])

    def end_task(self, batches: Iterable[Batch] = ()) -> None:
        """Measure the curvature of the task (of all tasks, for "al"), and make the posterior the prior."""
        reservoir = Reservoir(self.memory, self.generator)
        newest, size = self._measure(self._samples(batches, reservoir))
        self.penalty.move_anchor(keep=self.kind == "ptl")
        if self.kind == "al":
            self.penalty.reset_precision()
            for old in self.old_samples:
                curvature, count = self._measure(Samples(old["x"], old["y"], old["mask"]).batches(CHUNK))
                self.penalty.add(self._scale(curvature, old["size"] / count))
            self.old_samples.append({**reservoir.samples._asdict(), "size": size})
        self.penalty.add(self._scale(newest, 1.0))
        self.tasks_ended += 1
        super().end_task(batches)

    def _samples(self, batches: Iterable[Batch], reservoir: Reservoir) -> Iterator[Samples]:
        for batch in batches:
            samples = Samples(batch.x, batch.y, self.outputs.consolidation_mask(batch.task))
            if self.kind == "al":
                reservoir.add(samples)
            yield samples

    def _measure(self, data: Iterable[Samples]) -> tuple[Curvature, int]:
        likelihood = self.outputs.likelihood
        return measure_curvature(self.net, likelihood, data, self.curvature, self.fisher_label, self.generator)

    def _scale(self, curvature: Curvature, weight: float) -> Curvature:
        return {name: block.scaled(self.coefficient * weight) for name, block in curvature.items()}
