"""Learners with a posterior over the weights: how they predict from sampled networks."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from bgd.inference import evaluating
from bgd.methods.common.base import Base
from bgd.methods.common.penalty import Weights


class PosteriorLearner(Base):
    """A learner that can sample networks from its posterior: a method defines ``sample_scores`` and ``std``."""

    test_samples: int = 0

    def sample_scores(self, x: Tensor, samples: int) -> Iterable[Tensor]:
        """The scores (B, outputs) of ``samples`` networks, one after the other: the same networks at every call."""
        raise NotImplementedError

    def std(self) -> Weights:
        """The std of each weight."""
        raise NotImplementedError

    def check_posterior(self) -> None:
        """Warn if the posterior has collapsed: asked for once, at the end of a run."""

    @torch.no_grad()
    def predict_samples(self, x: Tensor, samples: int, task: int | Tensor | None = None) -> Tensor:
        """The scores of ``samples`` sampled networks, (samples, B, outputs): the same networks at every call."""
        with evaluating(self.net):
            return torch.stack([self.outputs.restrict(scores, task) for scores in self.sample_scores(x, samples)])

    @torch.no_grad()
    def predict(self, x: Tensor, task: int | Tensor | None = None) -> Tensor:
        """The scores of the mean network, or the average of ``test_samples`` networks (:meth:`Outputs.average`)."""
        if not self.test_samples:
            return super().predict(x, task)
        return self.outputs.average(self.predict_samples(x, self.test_samples, task))
