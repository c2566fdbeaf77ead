"""Running statistics of normalisation layers: one move per step, however many networks are sampled.

A step runs the model once per sampled network, and each run moves the running statistics of every BatchNorm layer.
Here each run starts from the statistics of before the step, and the step ends with the mean of what the runs made of
them. The move is linear in a batch's statistics, so this is one ordinary move with the statistics averaged over
the sampled networks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.module import register_module_forward_pre_hook

OnModule = Callable[[nn.Module], None]


class RunningStatistics:
    """Finds the normalisation layers that run during a step and averages their statistics over the samples.

    An optimizer is given parameters, not modules: the layers are found as they are called, by a hook that lives only
    while a step does. ``on_module`` is called once for each root module seen.
    """

    def __init__(self, on_module: OnModule | None = None) -> None:
        self._on_module = on_module
        self._seen: WeakSet[nn.Module] = WeakSet()
        self._layers: WeakSet[_NormBase] = WeakSet()
        self._before: dict[_NormBase, list[Tensor]] = {}
        self._total: dict[_NormBase, list[Tensor]] = {}
        self._samples = 0
        self._hook: Any = None

    @torch.no_grad()
    def begin_sample(self) -> None:
        """Put the statistics back to where the step began; the first sample of a step remembers them."""
        if self._hook is None:
            self._hook = register_module_forward_pre_hook(self._meet)
            for layer in self._layers:
                self._before[layer] = [b.clone() for b in _buffers(layer)]
        else:
            self._restore()

    @torch.no_grad()
    def end_sample(self) -> None:
        """Count in what this sample made of the statistics."""
        self._samples += 1
        for layer in self._before:
            now = [b.clone() for b in _buffers(layer)]
            if layer in self._total:
                for total, value in zip(self._total[layer], now, strict=True):
                    # Counters are the same in every sample that ran the layer: keep the largest, do not add.
                    total.add_(value) if total.is_floating_point() else total.copy_(torch.maximum(total, value))
            else:
                self._total[layer] = now

    @torch.no_grad()
    def commit(self) -> None:
        """End the step with the mean over its samples."""
        for layer, totals in self._total.items():
            for buffer, total in zip(_buffers(layer), totals, strict=True):
                buffer.copy_(total / self._samples if total.is_floating_point() else total)
        self._close()

    @torch.no_grad()
    def abort(self) -> None:
        """End the step as if it had not been."""
        self._restore()
        self._close()

    def _meet(self, module: nn.Module, _args: Any) -> None:
        if module in self._seen:
            return
        if self._on_module is not None:
            self._on_module(module)
        for part in module.modules():
            self._seen.add(part)
            if isinstance(part, _NormBase) and part.track_running_stats:
                self._layers.add(part)
                # The hook runs before the layer does, so these are still the statistics of before the step. A layer
                # met only now, in a later sample, stood still in the earlier ones.
                self._before[part] = before = [b.clone() for b in _buffers(part)]
                if self._samples:
                    self._total[part] = [b * self._samples if b.is_floating_point() else b.clone() for b in before]

    def _restore(self) -> None:
        for layer, before in self._before.items():
            for buffer, value in zip(_buffers(layer), before, strict=True):
                buffer.copy_(value)

    def _close(self) -> None:
        self._before, self._total, self._samples = {}, {}, 0
        if self._hook is not None:
            self._hook.remove()
            self._hook = None


def _buffers(layer: _NormBase) -> list[Tensor]:
    return [b for b in (layer.running_mean, layer.running_var, layer.num_batches_tracked) if isinstance(b, Tensor)]
