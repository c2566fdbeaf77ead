"""Extreme data, weights and step sizes: a step is taken to a finite posterior, or refused before it has moved."""

import random
import warnings
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
import torch
from attacks import attacks
from torch import Tensor, nn

from bgd import BGD
from bgd.optim.estimators.base import Expectations

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
SIZES = (1e-45, 1e-30, 1e-10, 1.0, 1e4, 1e10, 1e19, 1e30, 1e38, 3e38)


def extreme(pick: random.Random) -> tuple[BGD, nn.Module, Any]:
    """A small model with extreme data and settings, its optimizer, and what takes one step."""
    dtype = pick.choice(DTYPES)
    activation = pick.choice((nn.ReLU, nn.Tanh, nn.Identity))
    model = nn.Sequential(nn.Linear(3, 4), activation(), nn.Linear(4, 2)).to(dtype)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(pick.choice((1.0, 1.0, 1e-4, 1e3, 6e4)))
            p.nan_to_num_()
    largest = torch.finfo(dtype).max
    x = (torch.randn(5, 3) * min(pick.choice(SIZES), largest / 4)).to(dtype)
    y = (torch.randn(5, 2) * min(pick.choice(SIZES), largest / 4)).to(dtype)
    settings: dict[str, Any] = {
        "lr": pick.choice((0.0, 1e-40, 1.0, 1.0, 1e10, 1e30, 1e38)),
        "std_init": pick.choice((1e-18, 1e-4, 0.02, 0.1, 1.0, 1e6)),
        "std_max": pick.choice((None, "init")),
        "max_move": pick.choice((None, None, 0.25, 1e12)),
        "boost": pick.choice((None, 256.0)),
        "reduction": pick.choice(("sum", "mean")),
        "nonfinite": pick.choice(("raise", "skip")),
        "implicit_iterations": pick.choice((1, 1, 1, 3)),
    }
    if pick.random() < 0.2:
        settings["lr"] = torch.tensor(settings["lr"], dtype=torch.float64)
    estimator = pick.choice(("per_example", "shared"))
    optimizer = BGD(model.named_parameters(), estimator=estimator, mc_samples=2, seed=1, **settings)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = (model(x) - y).float().square()
        total = loss.sum() if settings["reduction"] == "sum" else loss.mean()
        total.backward()
        return total

    return (
        optimizer,
        model,
        lambda: optimizer.step(
            closure, batch_size=5 if settings["reduction"] == "mean" and estimator == "shared" else None
        ),
    )


def content(optimizer: BGD, model: nn.Module) -> list[Tensor]:
    return [t.clone() for p in model.parameters() for t in (optimizer.state[p]["mean"], optimizer.state[p]["std"], p)]


def attack(seed: int) -> str:
    """Three steps; returns what happened, and fails on a posterior that is not finite or half moved."""
    torch.manual_seed(seed)
    optimizer, model, step = extreme(random.Random(seed))
    outcome = "stepped"
    for _ in range(3):
        before = content(optimizer, model)
        with suppress(FloatingPointError):
            outcome = "raised"
            step()
            outcome = "stepped"
        if optimizer.skipped_steps:
            outcome = "skipped"
        after = content(optimizer, model)
        for one in after:
            assert bool(one.isfinite().all()), (seed, outcome)
        for p in model.parameters():
            assert bool((optimizer.state[p]["std"] > 0).all()), seed
        if outcome == "raised":
            assert all(map(torch.equal, before, after)), seed
            return outcome
    return outcome


def test_random_extreme_models_never_get_a_posterior_that_is_not_finite() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = Counter(attack(seed) for seed in range(attacks(30)))
    print(dict(outcomes))
    assert set(outcomes) == {"stepped", "raised", "skipped"}


@pytest.mark.parametrize("nonfinite", ["raise", "skip"])
@pytest.mark.parametrize(
    ("dtype", "lr", "std"), [(torch.float32, 1e38, 1.0), (torch.float16, 1e6, 1.0), (torch.float64, 1e38, 1e140)]
)
def test_a_finite_gradient_whose_step_overflows_is_refused(
    nonfinite: Any, dtype: torch.dtype, lr: float, std: float
) -> None:
    p = nn.Parameter(torch.ones(3, dtype=dtype))
    optimizer = BGD.paper([("scale", p)], std_init=std, lr=lr, nonfinite=nonfinite)
    wide = optimizer.state[p]["mean"].dtype

    def estimator(step: Any) -> Expectations:
        return Expectations(
            [torch.full((3,), 10.0, dtype=wide)], [torch.zeros(3, dtype=wide)], torch.tensor(0.0), has_gradient=[True]
        )

    if nonfinite == "raise":
        with pytest.raises(FloatingPointError, match=r"leads to a NaN or infinite mean in 'scale' \(3,\) at step 0"):
            optimizer.step_with(estimator)
    else:
        optimizer.step_with(estimator)
        assert optimizer.skipped_steps == 1
    assert torch.equal(p, torch.ones(3, dtype=dtype))
    assert torch.equal(optimizer.state[p]["std"], torch.full((3,), std, dtype=wide))


def test_a_step_that_nearly_overflows_is_taken_with_the_same_bits() -> None:
    """The careful path, on copies, is the update in place."""
    results = []
    for weights in (torch.float32, torch.float16):  # float16 takes the careful path
        p = nn.Parameter(torch.linspace(-1, 1, 9).to(torch.float16).to(weights))
        optimizer = BGD.paper([p], std_init=50.0, lr=1.0)
        g = torch.linspace(-3, 3, 9)
        for _ in range(2):
            optimizer.step_with(
                lambda step: Expectations([g], [0.01 * g], torch.tensor(0.0), has_gradient=[True])  # noqa: B023
            )
        results.append((optimizer.state[p]["mean"], optimizer.state[p]["std"]))
    assert all(map(torch.equal, *results))
