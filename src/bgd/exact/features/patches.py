"""Features of images: whitened random patches, in the manner of Coates & Ng (2011)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d, conv2d, unfold

from bgd.exact.features.base import Features
from bgd.exact.head import ExactError
from bgd.validation import check_whole

SAMPLES = 100_000
"""Patches that whitening is estimated from."""
CHUNK = 2**20
"""Numbers in a map of responses at a time: what fits the cache of a CPU."""


class Patches(Features):
    """Compare every place of an image with patches of the first images.

    A patch of the image, size x size x channels, is normalised (minus its mean, over its std) and whitened by ZCA; r is
    its product with each of ``patches`` random whitened patches f of unit length, and

        phi = mean over each of pool x pool regions of max(0, r - threshold) and max(0, -r - threshold)

    so D = patches x 2 x pool^2. Whitening is folded into the filters, so that it all is one convolution.

    Args:
        shape: of one image, (channels, height, width).
        patches: number of filters.
        size: of a patch.
        pool: regions along each side.
        threshold: below which a response does not count.
        seed: of the choice of patches.

    >>> features = Patches((1, 8, 8), patches=6, size=3)
    >>> features.fit(torch.rand(20, 1, 8, 8))(torch.rand(2, 1, 8, 8)).shape
    torch.Size([2, 49])
    """

    filters: Tensor
    offsets: Tensor
    floor: Tensor

    def __init__(
        self,
        shape: Sequence[int],
        patches: int = 400,
        size: int = 6,
        pool: int = 2,
        threshold: float = 0.25,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_whole(1, patches=patches, size=size, pool=pool)
        if len(shape) != 3 or min(shape[1:]) < size + pool - 1:
            raise ExactError(
                f"patches of {size} x {size} need images (channels, height, width) of at least {size + pool - 1} "
                f"pixels a side, but the shape is {tuple(shape)}: use features='fourier', or a smaller size"
            )
        self.size, self.pool, self.threshold, self.seed = size, pool, threshold, seed
        self.dim = patches * 2 * pool**2 + 1
        self.register_buffer("filters", torch.zeros(patches, shape[0], size, size))
        self.register_buffer("offsets", torch.zeros(patches))
        self.register_buffer("floor", torch.ones(()))

    def adapt(self, x: Tensor) -> None:
        """Draw patches from the images, whiten them, and fold the whitening into the filters."""
        generator = torch.Generator().manual_seed(self.seed)
        x = x.double().cpu()
        self.floor.copy_(0.003 * x.var() + 1e-12)
        patches = self._draw(x, generator)
        centred = patches - patches.mean(1, keepdim=True)
        normalised = centred / (centred.square().mean(1, keepdim=True) + self.floor.double().cpu()).sqrt()
        mean = normalised.mean(0)
        values, vectors = torch.linalg.eigh(torch.cov(normalised.T))
        zca = vectors @ torch.diag((values.clamp_min(0) + 0.1).rsqrt()) @ vectors.T
        chosen = normalised[torch.randint(len(normalised), (len(self.filters),), generator=generator)]
        directions = torch.nn.functional.normalize((chosen - mean) @ zca, dim=1) @ zca
        # of a patch only its difference from its mean matters
        self.filters.copy_((directions - directions.mean(1, keepdim=True)).reshape(self.filters.shape))
        self.offsets.copy_(directions @ mean)

    def _draw(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Patches (n, channels x size^2) at random places."""
        each = max(1, min(SAMPLES // len(x), 200))
        found = []
        for image in x:
            places = unfold(image[None], self.size)[0].T
            found.append(places[torch.randint(len(places), (each,), generator=generator)])
        return torch.cat(found)

    def transform(self, x: Tensor) -> Tensor:
        """The pooled responses, for a few images at a time."""
        if torch.onnx.is_in_onnx_export():  # where the number of images is not known
            return self._responses(x)
        places = math.prod(side - self.size + 1 for side in x.shape[2:])
        step = max(1, CHUNK // (places * len(self.filters)))
        return torch.cat([self._responses(chunk) for chunk in torch.split(x, step)])

    def _responses(self, x: Tensor) -> Tensor:
        mean = avg_pool2d(x, self.size, stride=1).mean(1, keepdim=True)
        square = avg_pool2d(x.square(), self.size, stride=1).mean(1, keepdim=True)
        std = ((square - mean.square()).clamp_min(0) + self.floor).sqrt()
        responses = conv2d(x, self.filters).div_(std).sub_(self.offsets[:, None, None])
        positive = adaptive_avg_pool2d((responses - self.threshold).relu_(), self.pool)
        negative = adaptive_avg_pool2d((responses.neg_().sub_(self.threshold)).relu_(), self.pool)
        return torch.cat([positive, negative], dim=1).flatten(1)
