"""BGD on several processes: the update of one process, with its work shared."""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import nn

from bgd.optim.bgd import BGD, Params, _averages_gradients
from bgd.optim.estimators.gradient_sums import GradientSums
from bgd.optim.validation import StdInit
from bgd.validation import check_choice


class DistributedBGD(BGD):
    """BGD whose ranks share one posterior and split the work of a step.

    - ``split="samples"``: every rank sees the same batch and draws its share of the K networks.
    - ``split="batch"``: every rank sees its part of the batch and draws all K networks, with the same noise.

    Either way the ranks add up sum(g) and sum(g eps) of *all* samples and *all* examples. What must not happen is that
    gradients are averaged over ranks with different noise before they meet their eps, as a ``DistributedDataParallel``
    wrapper does: E[g eps] would shrink by the number of ranks. So give the closure the bare model. With
    ``split="samples"`` the wrapper is an error; with ``split="batch"`` and parts of equal size it only costs time.

    Rank 0's weights, stds and seed are taken by all, those of a group that is added later too. With
    ``reduction="mean"`` each rank passes its own ``batch_size``. A normalisation layer's running statistics stay those
    of the rank, as with ``DistributedDataParallel(broadcast_buffers=False)``.

    Args:
        params: as for :class:`bgd.BGD`, like all that is not named here.
        std_init: as for :class:`bgd.BGD`.
        split: ``"samples"`` or ``"batch"``.
        process_group: the ranks that share the work; None for all of them.
        **settings: the other settings of :class:`bgd.BGD`.
    """

    def __init__(
        self,
        params: Params,
        std_init: StdInit = 0.02,
        *,
        split: Literal["samples", "batch"],
        process_group: dist.ProcessGroup | None = None,
        **settings: Any,
    ) -> None:
        check_choice("split", split, ("samples", "batch"))
        if not dist.is_initialized():
            raise RuntimeError("DistributedBGD needs torch.distributed.init_process_group first; or use BGD")
        self.split = split
        self.process_group = process_group
        super().__init__(params, std_init, **settings)
        self._rank = dist.get_rank(process_group)
        self._world = dist.get_world_size(process_group)
        if split == "samples" and self.mc_samples < self._world:
            raise ValueError(
                f"{self._world} ranks cannot share mc_samples={self.mc_samples} networks: draw more of them"
            )
        told = [self._position()]
        dist.broadcast_object_list(told, self._first, process_group)
        self._place(told[0])
        self._take_from_first_rank(self.param_groups)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters on all ranks, as for :class:`bgd.BGD`; rank 0's values are taken by all."""
        super().add_param_group(param_group)
        if hasattr(self, "_world"):  # those of the beginning are shared when all is known
            self._take_from_first_rank(self.param_groups[-1:])

    @property
    def _first(self) -> int:
        return dist.get_global_rank(self.process_group, 0) if self.process_group is not None else 0

    @torch.no_grad()
    def _take_from_first_rank(self, groups: list[dict[str, Any]]) -> None:
        told = [group["std_init"] for group in groups]
        dist.broadcast_object_list(told, self._first, self.process_group)
        for group, std_init in zip(groups, told, strict=True):
            group["std_init"] = std_init
            for p in group["params"]:
                for tensor in (p, *self.state[p].values()):
                    dist.broadcast(tensor, self._first, self.process_group)

    def _own_samples(self) -> range:
        return range(self._rank, self.mc_samples, self._world) if self.split == "samples" else range(self.mc_samples)

    def _sample_index(self, count: int) -> int:
        return self._rank + count * self._world if self.split == "samples" else count

    def _reduce(self, pending: GradientSums, batch_size: int | None) -> float:
        # A rank's mean over its part becomes a sum before the ranks add up: their parts may differ in size.
        scale = super()._reduce(pending, batch_size)
        losses = [float(loss) for loss in pending.losses]
        own_mean = sum(losses) / max(len(losses), 1)
        if self.split == "samples":
            loss, weight = sum(losses), float(len(losses))
        elif self.reduction == "mean":
            loss, weight = scale * own_mean, scale
        else:
            loss, weight = own_mean, 1 / self._world
        touched = [float(p not in pending.untouched) for p in pending.params]
        shared = pending.e_g[0].new_tensor([pending.count, loss, weight, *touched], dtype=torch.float64)
        sums = [*pending.e_g, *pending.e_g_eps]
        torch._foreach_mul_(sums, scale)
        for tensor in [shared, *sums]:
            dist.all_reduce(tensor, group=self.process_group)
        count, loss, weight, *touched = shared.tolist()
        if self.split == "samples":
            pending.count = int(count)
        if pending.losses:
            pending.losses = [pending.losses[0].new_tensor(loss / weight)]
        # A parameter that any rank has a gradient of moves on all ranks.
        pending.untouched = {p for p, t in zip(pending.params, touched, strict=True) if not t}
        return 1.0

    def _check_models(self, models: list[nn.Module]) -> None:
        if self.split == "samples" and _averages_gradients(models, self._params()):
            raise RuntimeError(
                'DistributedDataParallel averages gradients over ranks, whose noise differs under split="samples": '
                'E[g eps] would shrink. Drop the wrapper and use the bare model, or use split="batch"'
            )

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("DistributedBGD belongs to its process group and is not copied: use its state_dict()")
