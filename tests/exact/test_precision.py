"""Products in bfloat16 lose nothing where the factors are bfloat16 numbers, and the setting ends with its block."""

import pytest
import torch
from torch.testing import assert_close

from bgd.exact import statistics
from bgd.exact.features import Fourier
from bgd.exact.learner import ExactLearner, compute
from bgd.exact.precision import products


def test_sums_of_rounded_features_are_those_of_float32():
    generator = torch.Generator().manual_seed(0)
    phi = torch.randn(1024, 600, generator=generator).bfloat16()
    y = torch.randn(1024, 2, generator=generator)
    weights = torch.rand(1024, generator=generator)
    for given in (None, weights):
        mine = statistics.add(statistics.empty(600, 2), phi, y, given)
        exact = statistics.add(statistics.empty(600, 2), phi.double(), y.double(), given)
        for a, b in zip(mine, exact, strict=True):
            assert_close(a, b, atol=1e-3, rtol=1e-5)  # of float32; rounding the factors would cost 0.1


def test_what_is_predicted_has_the_features_that_were_learnt():
    x = torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
    y = x[:, :1].sin()
    rounded = ExactLearner(lambda shape: Fourier(shape, 60), 1, dtype=torch.bfloat16)
    rounded.learn(x, y)
    solution = rounded.solution()
    phi = compute(solution.features, x, torch.bfloat16).double()
    system = phi.T @ phi + 0.01 * torch.eye(61, dtype=torch.float64)
    assert_close(solution.mean(x), phi @ torch.linalg.solve(system, phi.T @ y.double()), atol=1e-3, rtol=1e-3)
    plain = ExactLearner(lambda shape: Fourier(shape, 60), 1)
    plain.learn(x, y)
    assert_close(solution.mean(x), plain.solution().mean(x), atol=0.02, rtol=0)


def test_the_setting_ends_even_after_an_error():
    backends = (torch.backends.mkldnn.matmul, torch.backends.mkldnn.conv)
    before = [backend.fp32_precision for backend in backends]
    with products(torch.bfloat16):
        assert [backend.fp32_precision for backend in backends] == ["bf16", "bf16"]
    with pytest.raises(ZeroDivisionError), products(torch.bfloat16):
        raise ZeroDivisionError
    assert [backend.fp32_precision for backend in backends] == before
