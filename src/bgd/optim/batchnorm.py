"""Running statistics of normalisation layers: one move per step, however many networks are sampled.

A step runs the model once per sampled network, and each run moves the running statistics of every BatchNorm layer.
Here each run starts from the statistics of before the step, and the step ends with the mean of their moves, so that
frozen statistics keep their bits. The move is linear in a batch's statistics, so this is one ordinary move with the
statistics averaged over the sampled networks.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase


class RunningStatistics:
    """Averages the statistics of the given models' normalisation layers over the samples of a step."""

    def __init__(self, models: Iterable[nn.Module]) -> None:
        self._layers = [
            m for model in models for m in model.modules() if isinstance(m, _NormBase) and m.track_running_stats
        ]
        self._buffers: list[Tensor] = []
        self._before: list[Tensor] = []
        self._total: list[Tensor] = []
        self._samples = 0

    @torch.no_grad()
    def begin_sample(self) -> None:
        """Put the statistics back to where the step began; the first sample of a step remembers them."""
        if self._before:
            self._restore()
        else:
            # Found again at each step: a model that moves to another device or type gets other buffers. One buffer may
            # be reached through several modules: a dict keeps each once.
            self._buffers = list({b: None for layer in self._layers for b in layer.buffers(recurse=False)})
            self._before = [b.clone() for b in self._buffers]

    @torch.no_grad()
    def end_sample(self) -> None:
        """Count in what this sample made of the statistics."""
        moves = [_move(buffer, before) for buffer, before in zip(self._buffers, self._before, strict=True)]
        if self._samples:
            for total, move in zip(self._total, moves, strict=True):
                # A counter of batches is the same in all samples: it is kept, not added up.
                total.add_(move) if total.is_floating_point() else total.copy_(move)
        else:
            self._total = moves
        self._samples += 1

    @torch.no_grad()
    def commit(self) -> None:
        """End the step with the mean over its samples."""
        for buffer, before, total in zip(self._buffers, self._before, self._total, strict=False):
            buffer.copy_(before + (total / self._samples if total.is_floating_point() else total))
        self._close()

    @torch.no_grad()
    def abort(self) -> None:
        """End the step as if it had not been."""
        self._restore()
        self._close()

    def _restore(self) -> None:
        for buffer, value in zip(self._buffers, self._before, strict=False):
            buffer.copy_(value)

    def _close(self) -> None:
        self._before, self._total, self._samples = [], [], 0


def _move(buffer: Tensor, before: Tensor) -> Tensor:
    """How far a sample has moved a buffer, in at least single precision."""
    wide = torch.promote_types(buffer.dtype, torch.float32) if buffer.is_floating_point() else buffer.dtype
    return buffer.to(wide) - before.to(wide)
