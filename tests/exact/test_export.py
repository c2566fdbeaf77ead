"""The predictor with its uncertainty in ONNX gives the numbers of the posterior."""

import pytest
import torch
from torch.testing import assert_close

from bgd.exact.export import Predictor, export_onnx
from bgd.exact.features import Fourier, Patches
from bgd.exact.learner import ExactLearner

MAKE = {
    "fourier": lambda shape: Fourier(shape, 30),
    "windows": lambda shape: Fourier(shape, 30, windows=True),
    "patches": lambda shape: Patches(shape, 5, size=3),
}


@pytest.mark.parametrize("name", MAKE)
def test_onnx_predicts_mean_and_std(name, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    generator = torch.Generator().manual_seed(0)
    x, y = torch.rand(90, 1, 8, 8, generator=generator), torch.randn(90, 3, generator=generator)
    learner = ExactLearner(MAKE[name], outputs=3)
    learner.learn(x, y)
    solution = learner.solution()
    export_onnx(solution, (1, 8, 8), tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    for size in (1, 7):
        mean, std = (torch.from_numpy(a) for a in session.run(["mean", "std"], {"x": x[:size].numpy()}))
        assert_close(mean, solution.mean(x[:size]).float(), atol=1e-3, rtol=1e-3)
        noise = solution.posterior.noise_variance()
        expected = (noise * (1 + solution.variance(x[:size])[:, None])).sqrt()
        assert_close(std, expected.float(), atol=1e-3, rtol=1e-3)
        own = Predictor(solution)(x[:size])
        assert_close(mean, own[0], atol=1e-4, rtol=1e-4)
