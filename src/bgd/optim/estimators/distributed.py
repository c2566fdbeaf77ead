"""BGD on several processes: the update of one process, with its work shared among ranks."""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import nn

from bgd.optim.base import Params
from bgd.optim.bgd import BGD
from bgd.optim.checkpoint import StateDictError
from bgd.optim.estimators.gradient_sums import GradientSums
from bgd.optim.modules import averages_gradients
from bgd.optim.stepping import PASSES
from bgd.optim.validation import StdInit
from bgd.validation import check_choice

SHARED_SAMPLES: dict[str, Any] = {
    "estimator": "shared",
    "mc_samples": 2,
    "max_move": None,
    "boost": None,
    "reduction": "sum",
}
"""The defaults of ``split="samples"``."""


class DistributedBGD(BGD):
    """BGD whose ranks share one posterior and split the work of a step.

    - ``split="batch"``: every rank sees its part of the batch. By default each example has noise of its own, and with
      parts of equal size it is the noise that one process would give it. A ``DistributedDataParallel`` wrapper is
      welcome, if all parts have the same size.
    - ``split="samples"``: every rank sees the same batch and draws its share of the K sampled networks.

    Either way the ranks add up sum(g) and sum(g eps) of *all* samples and *all* examples. What must not happen is that
    gradients are averaged over ranks with different noise before they meet their eps, as a ``DistributedDataParallel``
    wrapper does with sampled networks: E[g eps] would shrink by the number of ranks. So with ``split="samples"`` the
    wrapper is an error; with ``split="batch"``, where E[g eps] is not in the gradients or the noise is the same, it
    only costs time.

    All ranks take the weights, stds and seed of rank 0, those of a group that is added later too. A normalisation
    layer's running statistics stay those of the rank, as with ``DistributedDataParallel(broadcast_buffers=False)``.
    ``estimator="shared"`` with ``reduction="mean"`` needs each rank's own ``batch_size``.

    Args:
        params: as for :class:`bgd.BGD`, like all that is not named here.
        split: ``"batch"`` or ``"samples"``.
        process_group: the ranks that share the work; None for all of them.
        **settings: the settings of :class:`bgd.BGD`, with its defaults; for ``split="samples"`` by default two sampled
            networks with std 0.02 and a summed loss (``SHARED_SAMPLES``).
    """

    def __init__(
        self,
        params: Params,
        std_init: StdInit | None = None,
        *,
        split: Literal["batch", "samples"] = "batch",
        process_group: dist.ProcessGroup | None = None,
        **settings: Any,
    ) -> None:
        check_choice("split", split, ("batch", "samples"))
        estimator = settings.get("estimator", "shared")
        if split == "samples" and estimator in PASSES and not PASSES[estimator].samples_networks:
            raise ValueError(
                f'split="samples" shares out sampled networks, which estimator="{estimator}" does not have: '
                'use split="batch"'
            )
        if not dist.is_initialized():
            raise RuntimeError("DistributedBGD needs torch.distributed.init_process_group first; or use BGD")
        self.split = split
        self.process_group = process_group
        shared = SHARED_SAMPLES if split == "samples" else {}
        if split == "samples" and std_init is None:
            std_init = 0.02
        super().__init__(params, std_init=std_init, **(shared | settings))
        sharing = Ranks(split, process_group, mean=self.reduction == "mean")
        if split == "samples" and self.mc_samples < sharing.world:
            raise ValueError(
                f"{sharing.world} ranks cannot share mc_samples={self.mc_samples} networks: sample more of them"
            )
        self._ranks = self._sharing = sharing
        state = [self._own_state()]
        dist.broadcast_object_list(state, sharing.first, process_group)
        self._load_own_state(state[0])
        self._copy_from_first_rank(sharing, self.param_groups)

    def _reset(self) -> None:
        super()._reset()
        self._sharing = getattr(self, "_ranks", None) or self._sharing  # torch resets an optimizer that it loads

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters on all ranks, as for :class:`bgd.BGD`; all ranks take the values of rank 0."""
        super().add_param_group(param_group)
        if isinstance(self._sharing, Ranks):  # the first groups are shared when all is known
            self._copy_from_first_rank(self._sharing, self.param_groups[-1:])

    @torch.no_grad()
    def _copy_from_first_rank(self, sharing: Ranks, groups: list[dict[str, Any]]) -> None:
        std_inits = [group["std_init"] for group in groups]
        dist.broadcast_object_list(std_inits, sharing.first, sharing.process_group)
        for group, std_init in zip(groups, std_inits, strict=True):
            group["std_init"] = std_init
            for p in group["params"]:
                for tensor in (p, *self.state[p].values()):
                    dist.broadcast(tensor, sharing.first, sharing.process_group)

    def _check_state_dict(self, state_dict: Any) -> None:
        super()._check_state_dict(state_dict)
        own = state_dict["bgd"]
        if self.split == "samples" and not PASSES[own["estimator"]].samples_networks:
            raise StateDictError(f"bgd['estimator'] is {own['estimator']!r}: ranks share out sampled networks")
        if self.split == "samples" and own["mc_samples"] < dist.get_world_size(self.process_group):
            raise StateDictError(f"bgd['mc_samples'] is {own['mc_samples']}: fewer networks than ranks")

    def _check_models(self, models: list[nn.Module]) -> None:
        averaged = averages_gradients(models, self._params())
        if isinstance(self._sharing, Ranks):
            self._sharing.averaged = averaged
        if self.split == "samples" and averaged:
            raise RuntimeError(
                'DistributedDataParallel averages gradients over ranks, whose noise differs under split="samples": '
                'E[g eps] would shrink. Drop the wrapper and use the bare model, or use split="batch"'
            )

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("DistributedBGD belongs to its process group and is not copied: use its state_dict()")


class Ranks:
    """Ranks that share the samples or the batch of a step: sum(g) and sum(g eps) are added up over all of them.

    Args:
        split: ``"samples"`` or ``"batch"``.
        process_group: of the ranks; None for all of them.
        mean: whether the loss of a rank is a mean over its part of the batch.
    """

    def __init__(self, split: str, process_group: dist.ProcessGroup | None, mean: bool) -> None:
        self.split, self.process_group, self.mean = split, process_group, mean
        self.rank = dist.get_rank(process_group)
        self.world = dist.get_world_size(process_group)
        self.averaged = False  # whether a wrapper averages the gradients over the ranks

    @property
    def first(self) -> int:
        """The global number of the first rank."""
        return dist.get_global_rank(self.process_group, 0) if self.process_group is not None else 0

    def samples(self, count: int) -> range:
        """Every world-th sample, or all of them."""
        return range(self.rank, count, self.world) if self.split == "samples" else range(count)

    def place(self) -> tuple[int, int]:
        """The rank's part of the batch."""
        return (self.rank, self.world) if self.split == "batch" else (0, 1)

    def reduce(self, sums: GradientSums, batch_factor: float) -> float:
        """Add up over the ranks; a rank's mean over its part becomes a sum first, since parts may differ in size."""
        losses = [float(loss) for loss in sums.losses]
        own_mean = sum(losses) / max(len(losses), 1)
        if self.split == "samples":
            loss, weight = sum(losses), float(len(losses))
        elif self.mean:
            weight = sums.examples or batch_factor
            loss = weight * own_mean
        else:
            loss, weight = own_mean, 1 / self.world
        touched = [float(known) for known in sums.has_gradient or [True] * len(sums.params)]
        numbers = [sums.count, loss, weight, sums.examples, sums.examples**2, *touched]
        shared = sums.e_g[0].new_tensor(numbers, dtype=torch.float64)
        tensors = [*sums.e_g, *sums.e_g_eps]
        torch._foreach_mul_(tensors, batch_factor)
        for tensor in [shared, *tensors]:
            dist.all_reduce(tensor, group=self.process_group)
        count, loss, weight, examples, squares, *touched = shared.tolist()
        if self.averaged and squares * self.world != examples**2:
            raise RuntimeError(
                "DistributedDataParallel has averaged gradients of parts of the batch that differ in size, "
                f"{int(examples)} examples in all: give all ranks as many, or drop the wrapper"
            )
        if self.split == "samples":
            sums.count = int(count)
        else:
            sums.examples = round(weight) if self.mean else int(examples)
        if sums.losses:
            sums.losses = [sums.losses[0].new_tensor(loss / weight)]
        # A parameter that has a gradient on any rank is updated on all ranks.
        sums.has_gradient = [bool(t) for t in touched]
        return 1.0
