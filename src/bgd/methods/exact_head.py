"""The exact Bayesian linear head on features that are not trained."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from bgd.exact import sharpness
from bgd.exact.features import Features, Fourier, Identity, Network, Patches, RandomReLU
from bgd.exact.learner import BLOCK, ExactLearner
from bgd.methods.common.base import Base
from bgd.methods.common.outputs import Outputs
from bgd.methods.common.types import MethodError
from bgd.optim.bgd import BGD
from bgd.optim.noise import fold
from bgd.validation import check_choice, check_whole

_FEATURES = 3  # separates the seed of the features from other uses of a run's seed
PRECISIONS = {name: getattr(torch, name) for name in ("bfloat16", "float32", "float64")}
FEATURES = ("fourier", "relu", "patches", "identity", "net", "trained")


class ExactHead(Base):
    """L = ridge I + sum phi phi^T, B = sum phi y^T, W = L^-1 B: one pass, no boundaries, no step size.

    The posterior of a linear map from features phi(x) to one-hot targets (or to numbers, in a regression), exact and
    the same for every order of the data: in class learning too it is the head trained on everything at once. The
    network of the run is not used, except by the features "net" and "trained". See :mod:`bgd.exact`.

    Scores are c W^T phi, whose softmax is calibrated by the sharpness c (:mod:`bgd.exact.sharpness`). The Gaussian's
    own probabilities, c = 1 / s^2 with s^2 the mean squared error, are far too certain, since errors are not Gaussian.
    The loss of training is that of the latest 1,024 examples before they were learnt, by an earlier posterior, since
    to solve costs D^3 / 3. Predictions are of all data.

    Args:
        features: "fourier": random Fourier features of vectors. "relu": random ReLU units. "patches": whitened random
            patches, for images (Coates & Ng 2011). "identity": the inputs. "net": what the last layer of the run's
            network is given; the network is not trained. "trained": the same, while BGD trains the network on the loss
            of each batch. The sums are then of features that have since moved, so a discount below 1 has to forget
            those: it is what keeps sums and features consistent.
        units: of random features ("fourier", "relu"), or the number of patches, which give 2 pool^2 features each.
        ridge: precision of the prior, for features with |phi|^2 = 1 on average.
        discount: gamma: an example counts gamma^age, with its age in examples. None: 0.9995 for "trained", else 1.
        scale: length scale of "fourier" in units of the median distance between inputs.
        windows: each unit of "fourier" or "relu" sees a random square of an image instead of all of it.
        size: of a patch, in pixels.
        pool: regions along each side of an image, in which responses to patches are averaged.
        threshold: below which the response to a patch does not count.
        mirror: learn every image also mirrored left to right, and predict the mean of both.
        precision: of features and products: "float32", "float64", or "bfloat16", whose products are added up in float32
            and often take half the time (:mod:`bgd.exact.precision`); sums and solution are float64.
        seed: of the features, and of BGD's noise.

    >>> from bgd.scenarios.heads import Heads
    >>> learner = ExactHead(nn.Linear(2, 2), Outputs(Heads(2, ((0, 1),))), features="identity")
    >>> x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    >>> loss = learner.observe(x, (x[:, 0] > 0).long())
    >>> learner.predict(torch.tensor([[1.0, 0.0], [-1.0, 0.0]])).argmax(1)
    tensor([1, 0])
    """

    state_attributes = ("exact", "recent_loss", "losses")

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        *,
        features: Literal["fourier", "relu", "patches", "identity", "net", "trained"] = "fourier",
        units: int = 2000,
        ridge: float = 0.01,
        discount: float | None = None,
        scale: float = 1.0,
        windows: bool = False,
        size: int = 6,
        pool: int = 2,
        threshold: float = 0.25,
        mirror: bool = False,
        precision: Literal["bfloat16", "float32", "float64"] = "float32",
        seed: int = 0,
    ) -> None:
        check_choice("features", features, FEATURES)
        check_choice("precision", precision, tuple(PRECISIONS))
        check_whole(1, units=units, size=size, pool=pool)
        self.trained = features == "trained"
        if self.trained and discount == 1:
            raise MethodError("features='trained' move while they are trained: use a discount below 1, as 0.9995")
        optimizer = BGD(net.parameters(), seed=seed) if self.trained else torch.optim.SGD(net.parameters(), lr=0.0)
        super().__init__(net, outputs, optimizer)
        self.windows = windows
        self.features, self.units, self.seed, self.mirror = features, units, fold(seed, _FEATURES), mirror
        self.own = {"scale": scale, "size": size, "pool": pool, "threshold": threshold}
        gamma = (0.9995 if self.trained else 1.0) if discount is None else discount
        # a network that moves is asked for its features while they are those of the batch
        block = 1 if self.trained else BLOCK
        self.exact = ExactLearner(self.make_features, outputs.heads.outputs, ridge, gamma, block, PRECISIONS[precision])
        self.recent_loss: float | None = None
        self.losses = sharpness.initial_losses()

    def make_features(self, shape: tuple[int, ...]) -> Features:
        """The features by their name, for inputs of a shape."""
        own, seed = self.own, self.seed
        if self.features == "fourier":
            return Fourier(shape, self.units, (own["scale"],), seed, self.windows)
        if self.features == "relu":
            return RandomReLU(shape, self.units, seed, self.windows)
        if self.features == "patches":
            return Patches(shape, self.units, int(own["size"]), int(own["pool"]), own["threshold"], seed)
        if self.features == "identity":
            return Identity(shape)
        return Network(self.net, shape, layer="penultimate")

    def observe(self, x: Tensor, y: Tensor, task: int | Tensor | None = None) -> float:
        """Learn a batch; returns the loss before it (see the class)."""
        self.outputs.add_labels(y)
        targets = self.targets(y)
        images = torch.cat([x, x.flip(-1)]) if self.mirror else x
        loss = super().observe(x, y, task) if self.trained else None
        block = self.exact.learn(images, torch.cat([targets, targets]) if self.mirror else targets)
        if loss is not None:
            return loss
        self.iteration += 1
        likelihood = self.outputs.likelihood
        if block is not None:
            labels = block.targets.argmax(1) if likelihood.classification else block.targets
            self.recent_loss = float(likelihood.loss(self.to_scores(block.mean), labels).mean())
            if likelihood.classification:
                self.losses = sharpness.update_losses(self.losses, block.mean, labels, block.mean.any(0))
        if self.recent_loss is None:  # nothing has been solved: the loss of the prior's mean, 0
            return float(likelihood.loss(torch.zeros_like(targets), y).mean())
        return self.recent_loss

    def targets(self, y: Tensor) -> Tensor:
        """One-hot labels, or the numbers themselves in a regression: (B, outputs)."""
        outputs = self.outputs.heads.outputs
        if self.outputs.likelihood.classification:
            return nn.functional.one_hot(y, outputs).to(torch.get_default_dtype())
        return y.reshape(len(y), outputs).to(torch.get_default_dtype())

    def to_scores(self, mean: Tensor) -> Tensor:
        """Logits of a classification, in which classes never seen come last; the mean itself in a regression."""
        if not self.outputs.likelihood.classification:
            return mean
        logits = sharpness.best(self.losses) * mean
        lowest = logits.min(dim=1, keepdim=True).values
        return torch.where(self.outputs.seen, logits, lowest)

    @torch.no_grad()
    def predict(self, x: Tensor, task: int | Tensor | None = None) -> Tensor:
        """The scores of the posterior's mean, limited to the head of the task where it is given."""
        solution = self.exact.solution()
        if solution is None:
            return self.outputs.restrict(torch.zeros(len(x), self.outputs.heads.outputs, device=x.device), task)
        mean = solution.mean(x)
        if self.mirror:
            mean = (mean + solution.mean(x.flip(-1))) / 2
        return self.outputs.restrict(self.to_scores(mean).float(), task)
