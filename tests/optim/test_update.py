"""The closed-form updates against answers that are known."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bgd.optim.in_place import update_in_place
from bgd.optim.update import FixedPoint, Gaussian, Limits, solve_implicit, std_bounds, update_mean, update_std

F64 = torch.float64


def solve_one(mean: torch.Tensor, std: torch.Tensor, expectations, **settings) -> FixedPoint:
    """The implicit equations of a single tensor."""
    return solve_implicit([Gaussian(mean, std)], lambda posterior: [expectations(*posterior[0])], **settings)


def scalar(value: float, dtype: torch.dtype = F64) -> torch.Tensor:
    return torch.tensor(value, dtype=dtype)


@pytest.mark.parametrize("h", [0.01, 1.0, 4.0, 1e3, 1e6])
@pytest.mark.parametrize("std", [1e-3, 0.06, 1.0, 5.0])
def test_quadratic_loss_has_its_closed_form(h: float, std: float) -> None:
    # L = h/2 theta^2, so E[g eps] = h std.
    expected = std * math.exp(-math.asinh(h * std**2 / 2))
    assert float(update_std(scalar(std), scalar(h * std))) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("x", [-30.0, -1.0, 0.0, 0.3, 30.0])
def test_stable_form_equals_the_papers(x: float) -> None:
    std = 0.7
    e_g_eps = 2 * x / std
    paper = std * math.sqrt(1 + (std * e_g_eps / 2) ** 2) - std**2 * e_g_eps / 2
    assert float(update_std(scalar(std), scalar(e_g_eps))) == pytest.approx(paper, rel=1e-11)


def test_std_survives_where_the_textbook_form_cancels_to_zero() -> None:
    std, e_g_eps = torch.tensor(1.0), torch.tensor(1e5)
    x = 0.5 * std * e_g_eps
    assert float(std * torch.sqrt(1 + x * x) - std * x) == 0.0
    assert float(update_std(std, e_g_eps)) == pytest.approx(1e-5, rel=1e-5)


def test_mean_moves_by_eta_times_variance_times_gradient() -> None:
    assert float(update_mean(scalar(2.0), scalar(0.5), scalar(3.0), lr=0.1)) == pytest.approx(2 - 0.1 * 0.25 * 3)


def test_zero_gradient_changes_nothing_bit_for_bit() -> None:
    mean, std = torch.randn(1000), torch.rand(1000) + 1e-3
    zero = torch.zeros(1000)
    assert torch.equal(update_mean(mean, std, zero), mean)
    assert torch.equal(update_std(std, zero), std)


finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
stds = st.floats(min_value=2.0**-62, max_value=2.0**63, width=32)


@settings(max_examples=500)
@given(std=stds, e_g_eps=finite)
def test_std_stays_positive_finite_and_normal(std: float, e_g_eps: float) -> None:
    new = update_std(torch.tensor(std), torch.tensor(e_g_eps))
    low, high = std_bounds(torch.float32)
    assert low <= float(new) <= high
    assert float(new * new) >= torch.finfo(torch.float32).tiny
    assert math.isfinite(float(new * new))


@settings(max_examples=500)
@given(std=st.floats(1e-4, 10), a=finite, b=finite)
def test_std_falls_as_e_g_eps_rises(std: float, a: float, b: float) -> None:
    a, b = sorted((a, b))
    low, high = update_std(scalar(std), scalar(b)), update_std(scalar(std), scalar(a))
    assert low <= high
    if std * (b - a) > 1e-6 * max(1.0, abs(a), abs(b)) and abs(a) < 1e12 and abs(b) < 1e12:
        assert low < high
    assert (update_std(scalar(std), scalar(b)) < std) == (b > 0) or abs(std * b) < 1e-14


@given(std=st.floats(1e-3, 10), e_g_eps=st.floats(-1e3, 1e3))
def test_bounds_are_respected(std: float, e_g_eps: float) -> None:
    new = update_std(scalar(std), scalar(e_g_eps), std_min=0.01, std_max=0.5)
    assert 0.01 <= float(new) <= 0.5


@pytest.mark.parametrize("h", [0.1, 1.0, 30.0])
def test_implicit_solution_is_the_conjugate_posterior(h: float) -> None:
    target = 1.5  # L = h/2 (theta - target)^2
    prior_mean, prior_std = scalar(0.3), scalar(0.8)
    found = solve_one(
        prior_mean,
        prior_std,
        lambda mean, std: (h * (mean - target), h * std),
        iterations=20_000,
        tolerance=1e-14,
        damping=0.05,
    )
    precision = 0.8**-2 + h
    assert found.converged
    assert float(found.posterior[0].std) == pytest.approx(precision**-0.5, rel=1e-10)
    assert float(found.posterior[0].mean) == pytest.approx((0.3 * 0.8**-2 + h * target) / precision, rel=1e-10)


def test_implicit_solution_with_a_full_hessian() -> None:
    generator = torch.Generator().manual_seed(3)
    a = torch.randn(5, 5, generator=generator, dtype=F64)
    hessian = a @ a.T / 5
    prior_mean = torch.randn(5, generator=generator, dtype=F64)
    prior_std = torch.rand(5, generator=generator, dtype=F64) + 0.3
    # Under a diagonal Gaussian E[g] = H mean and E[g_i eps_i] = H_ii std_i.
    found = solve_one(
        prior_mean,
        prior_std,
        lambda mean, std: (hessian @ mean, hessian.diagonal() * std),
        iterations=5000,
        tolerance=1e-14,
        damping=0.2,
    )
    precision = torch.diag(prior_std**-2)
    exact_mean = torch.linalg.solve(precision + hessian, precision @ prior_mean)
    assert found.converged
    torch.testing.assert_close(found.posterior[0].mean, exact_mean, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(found.posterior[0].std ** -2, prior_std**-2 + hessian.diagonal(), rtol=1e-9, atol=1e-11)


def test_implicit_reports_that_it_has_not_converged() -> None:
    steep = solve_one(scalar(1.0), scalar(1.0), lambda m, s: (50 * m, 50 * s), iterations=30)
    assert not steep.converged
    assert steep.iterations == 30


def online(n: int) -> float:
    """Total curvature 4 from std 1, in n equal steps."""
    std = scalar(1.0)
    for _ in range(n):
        std = update_std(std, 4 / n * std)
    return float(std)


def test_online_limit() -> None:
    found = [online(n) for n in (1, 10, 100, 1000)]
    assert [round(s, 4) for s in found] == [0.2361, 0.4321, 0.4458, 0.4471]
    errors = [5**-0.5 - s for s in found]
    assert errors[1] / errors[2] == pytest.approx(10, rel=0.15)  # falls as 1/n
    assert errors[2] / errors[3] == pytest.approx(10, rel=0.05)


def gauss_hermite(
    gradient, mean: torch.Tensor, std: torch.Tensor, order: int = 40
) -> tuple[torch.Tensor, torch.Tensor]:
    """E[g] and E[g eps] of a separable loss, by quadrature."""
    import numpy as np

    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    eps = torch.from_numpy(nodes).unsqueeze(-1)
    w = torch.from_numpy(weights / weights.sum()).unsqueeze(-1)
    g = gradient(mean + std * eps)
    return (w * g).sum(0), (w * g * eps).sum(0)


@settings(max_examples=50, deadline=None)
@given(
    m=st.floats(0.05, 5), quartic=st.floats(0, 0.5), mean=st.floats(-2, 2), std=st.floats(0.05, 1), sign=st.booleans()
)
def test_theorem_1_and_its_corollary(m: float, quartic: float, mean: float, std: float, sign: bool) -> None:
    # L = m/2 theta^2 + quartic theta^4 is strongly convex with parameter m; its negative is strongly concave.
    s = 1.0 if sign else -1.0
    means, sigma = scalar(mean).unsqueeze(0), scalar(std).unsqueeze(0)
    for _ in range(5):
        e_g, e_g_eps = gauss_hermite(lambda t: s * (m * t + 4 * quartic * t**3), means, sigma)
        assert float(s * e_g_eps) >= m * float(sigma) * (1 - 1e-9)
        new = update_std(sigma, e_g_eps, std_max=50.0)
        if float(new) < 50:
            assert (new < sigma) == sign
        else:
            break
        means, sigma = update_mean(means, sigma, e_g, lr=0.1), new


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("max_move", [None, 0.25])
def test_half_precision_is_computed_in_single_and_rounded_once(dtype: torch.dtype, max_move: float | None) -> None:
    generator = torch.Generator().manual_seed(2)
    mean, e_g, e_g_eps = (10 * torch.randn(3, 500, generator=generator)).to(dtype)
    std = (torch.rand(500, generator=generator) + 0.01).to(dtype)
    wide = [t.double() for t in (mean, std, e_g, e_g_eps)]
    exact = update_mean(*wide[:3], 0.3, max_move), update_std(wide[1], wide[3]).clamp(*std_bounds(dtype))
    posterior = Gaussian(mean.clone(), std.clone())
    update_in_place([posterior], [(e_g, e_g_eps)], [Limits(0.3, max_move=max_move)])
    functional = update_mean(mean, std, e_g, 0.3, max_move), update_std(std, e_g_eps)
    for found in (functional, posterior):
        for value, oracle in zip(found, exact, strict=True):
            assert value.dtype == dtype
            # at most half a unit in the last place, and what float32 itself rounds
            assert torch.allclose(value.double(), oracle, rtol=torch.finfo(dtype).eps * 0.51, atol=1e-5)


def test_the_implicit_equations_in_bfloat16_are_solved_in_single_precision() -> None:
    one = torch.ones((), dtype=torch.bfloat16)
    found = solve_one(one, one, lambda mean, std: (4 * mean, 4 * std), tolerance=1e-6, damping=0.3)
    assert found.converged
    assert found.posterior[0].std.dtype == torch.bfloat16
    assert float(found.posterior[0].std) == pytest.approx(5**-0.5, rel=2**-8)
