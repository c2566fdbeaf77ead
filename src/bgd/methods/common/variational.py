"""Learners that maximise the ELBO of a mean-field Gaussian by Adam: what VCL and BBB share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor, nn
from torch.func import functional_call

from bgd.methods.common.base import generator_for, optimizer_for
from bgd.methods.common.mean_field import MeanField
from bgd.methods.common.outputs import Outputs, check_outputs
from bgd.methods.common.penalty import Weights
from bgd.methods.common.posterior import PosteriorLearner
from bgd.scenarios.types import Batch
from bgd.validation import check_choice, check_whole

Sampling = Literal["weights", "local"]
"""One sample of all weights per pass (Blundell et al., 2015), for any net; or one sample of each layer's outputs per
sample of the batch (the local reparametrisation of Kingma et al., 2015), for nets of linear layers: gradients with less
noise at about the same cost."""


class Variational(PosteriorLearner):
    """Minimises mean_b E_q[loss] + KL(q || prior) / N by Adam: the negative ELBO per sample.

    Args:
        posterior: q and its prior, over the weights of ``net``.
        lr: Adam's learning rate, for means and log stds.
        train_samples: weight samples per step.
        test_samples: networks whose probabilities ``predict`` averages; 0 for the mean network alone.
        sampling: "weights" or "local".
        seed: of the samples.
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("posterior", "generator")

    def __init__(
        self,
        net: nn.Module,
        outputs: Outputs,
        posterior: MeanField,
        *,
        lr: float,
        train_samples: int,
        test_samples: int,
        sampling: Sampling,
        seed: int,
    ) -> None:
        check_choice("sampling", sampling, get_args(Sampling))
        check_whole(1, train_samples=train_samples)
        check_whole(0, test_samples=test_samples)
        if sampling == "local":
            posterior.check_local()
        parameters = [*posterior.mean.values(), *posterior.log_std.values()]
        super().__init__(net, outputs, optimizer_for(parameters, "adam", lr))
        self.posterior = posterior
        self.train_samples, self.test_samples, self.sampling = train_samples, test_samples, sampling
        self.seed = seed
        self.generator = generator_for(net, seed)

    def loss(self, x: Tensor, y: Tensor, task: int | Tensor | None) -> Tensor:
        """E_q[loss], by Monte Carlo."""
        sampled = (self._score_sample(x, self.generator) for _ in range(self.train_samples))
        total = sum((self.outputs.loss(scores, y, task) for scores in sampled), start=x.new_zeros(()))
        return total / self.train_samples

    def sample_scores(self, x: Tensor, samples: int) -> Iterator[Tensor]:
        """From a generator of their own, so that testing does not change the training."""
        generator = generator_for(self.net, self.seed + 1)
        return (self._score_sample(x, generator) for _ in range(samples))

    def std(self) -> Weights:
        """The std of each weight."""
        return self.posterior.std()

    def kl_weight(self) -> float:
        """The factor of the KL term: 1 / N, N the number of samples that the posterior learns from."""
        raise NotImplementedError

    def before_step(self, batch: Batch) -> None:  # noqa: ARG002
        """Add the gradient of the KL term."""
        self.posterior.add_kl_gradient(self.kl_weight())

    def _score_sample(self, x: Tensor, generator: torch.Generator) -> Tensor:
        if self.sampling == "local":
            with self.posterior.sampled_layers(generator):
                return self.scores(x)
        scores: Tensor = functional_call(self.net, self.posterior.sample(generator), (x,))
        check_outputs(self.net, scores, self.outputs.heads)
        return scores
