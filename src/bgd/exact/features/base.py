"""What a feature map is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bgd.exact.head import ExactError
from bgd.inference import evaluating

FIRST = 256
"""Inputs over which the scale is measured."""


class Features(nn.Module):
    """x -> phi(x), (B, ...) -> (B, dim). The last feature is the constant 1.

    A map may adapt to the first inputs it sees, never to labels: :meth:`fit` is called once, with them, and sets
    buffers. The same seed and the same first inputs give the same features. Features are scaled such that |phi|^2
    without the constant is 1 on average over the first inputs, so that one ridge suits all maps. A subclass sets
    ``dim``, defines ``transform`` and, where needed, ``adapt``.

    >>> from bgd.exact.features import Identity
    >>> features = Identity((2,)).fit(torch.tensor([[6.0, 8.0]]))
    >>> features(torch.tensor([[3.0, 4.0]]))
    tensor([[0.3000, 0.4000, 1.0000]])
    """

    dim: int
    fitted: Tensor
    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fitted", torch.tensor(False))
        self.register_buffer("scale", torch.ones(()))

    def fit(self, x: Tensor) -> Features:
        """Adapt to the first inputs; a second call changes nothing. Returns itself."""
        if not self.fitted:
            if not torch.isfinite(x).all():
                raise ExactError("the first inputs contain NaN or infinity: replace or drop those examples")
            with torch.no_grad(), evaluating(self):
                self.adapt(x)
                square = self.transform(x[:FIRST]).double().square().sum(1).mean()
                self.scale.copy_(square.clamp_min(1e-12).rsqrt())
            self.fitted.fill_(True)
        return self

    def adapt(self, x: Tensor) -> None:
        """Set buffers from the first inputs; nothing by default."""

    def transform(self, x: Tensor) -> Tensor:
        """The features (B, dim - 1) without the constant."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """The features (B, dim)."""
        with evaluating(self):
            phi = self.transform(x) * self.scale
        return torch.nn.functional.pad(phi, (0, 1), value=1.0)
