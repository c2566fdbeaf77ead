"""A learnt posterior as a network that predicts with its uncertainty, in PyTorch or as an ONNX file."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from bgd.exact.learner import Solution
from bgd.files import write_atomically


class Predictor(nn.Module):
    """x -> (mean, std), each (B, K), in float32: what :func:`export_onnx` writes.

    mean = W^T phi(x), std = s sqrt(1 + |C^-1 phi(x)|^2): the noise and what is not known of W.

    Args:
        solution: of a learner, see :meth:`bgd.exact.learner.ExactLearner.solution`.

    >>> from bgd.exact.features import Identity
    >>> from bgd.exact.learner import ExactLearner
    >>> learner = ExactLearner(Identity, outputs=1)
    >>> x = torch.linspace(-1, 1, 50)[:, None]
    >>> learner.learn(x, 2 * x + torch.tensor([0.1, -0.1]).repeat(25)[:, None])
    >>> mean, std = Predictor(learner.solution())(torch.tensor([[0.5], [50.0]]))
    >>> mean[0].round(decimals=1), std[0].round(decimals=1), std[1] > std[0]
    (tensor([1.]), tensor([0.1000]), tensor([True]))
    """

    weight: Tensor
    whitening: Tensor
    noise: Tensor

    def __init__(self, solution: Solution) -> None:
        super().__init__()
        posterior = solution.posterior
        self.features = solution.features
        eye = torch.eye(len(posterior.factor), dtype=posterior.factor.dtype, device=posterior.factor.device)
        inverse = torch.linalg.solve_triangular(posterior.factor, eye, upper=False)
        self.register_buffer("weight", posterior.mean.float())
        self.register_buffer("whitening", inverse.T.float())
        self.register_buffer("noise", posterior.noise_variance().float())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the std of the prediction."""
        phi = self.features(x)
        variance = (phi @ self.whitening).square().sum(1, keepdim=True)
        return phi @ self.weight, (self.noise * (1 + variance)).sqrt()


def export_onnx(solution: Solution, shape: Sequence[int], path: str | Path) -> None:
    """Write the predictor as an ONNX file: input "x" (B, ...), outputs "mean" and "std" (B, K), any B.

    Args:
        solution: of a learner.
        shape: of one input.
        path: of the file, replaced whole.

    Raises:
        ImportError: without the package onnx (``pip install "bgd[onnx]"``).
    """
    model = Predictor(solution).cpu().eval()
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the tracing exporter: it needs no compiler and no further package
        torch.onnx.export(
            model,
            (torch.zeros(2, *shape),),
            buffer,  # type: ignore[arg-type]
            dynamo=False,
            input_names=["x"],
            output_names=["mean", "std"],
            dynamic_axes={name: {0: "batch"} for name in ("x", "mean", "std")},
        )
    write_atomically(Path(path), buffer.getvalue())
