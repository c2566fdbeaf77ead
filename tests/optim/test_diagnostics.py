"""A posterior that dies is noticed, warned of once, and cured by the remedy in the warning."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from shared_bgd import shared_bgd
from torch import nn

from bgd import BGD, CollapseWarning, SettingsWarning
from bgd.optim.diagnostics import examine


def explosive(**settings) -> tuple[BGD, list[float]]:
    """A wide net, two samples, a large std: E[g eps] is mostly noise; uncapped, the stds explode in a few steps."""
    torch.manual_seed(0)
    x = torch.randn(128, 400)
    y = x[:, :10].argmax(1)
    model = nn.Sequential(nn.Linear(400, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 10))
    optimizer = shared_bgd(model.parameters(), std_init=0.12, seed=2019, nonfinite="skip", **settings)

    def closure() -> torch.Tensor:
        loss = F.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
        return loss

    losses = [float(optimizer.step(closure)) for _ in range(60)]
    return optimizer, losses


def test_a_collapse_is_warned_of_once_with_the_remedy() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explosive(std_max=None)
    messages = [str(w.message) for w in caught if issubclass(w.category, CollapseWarning)]
    assert len(messages) == 1
    assert "exploded" in messages[0]
    assert 'std_max="init"' in messages[0]


def test_the_warning_points_at_the_users_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explosive(std_max=None)
    assert next(w for w in caught if issubclass(w.category, CollapseWarning)).filename == __file__


def test_the_remedy_works() -> None:
    optimizer, losses = explosive()  # the default is capped; a warning would be an error here
    assert losses[-1] < losses[0]
    assert optimizer.skipped_steps == 0


def test_an_overflow_after_an_explosion_names_the_remedy() -> None:
    torch.manual_seed(0)
    p = nn.Parameter(torch.zeros(10))
    optimizer = shared_bgd([p], std_init=0.1)
    optimizer.state[p]["std"].fill_(1e10)

    def closure() -> torch.Tensor:
        loss = p.pow(5).sum()
        loss.backward()
        return loss

    with pytest.raises(FloatingPointError, match=r'exploded.*std_max="init"'):
        optimizer.step(closure)


def test_vanished_and_dead_posteriors_are_recognised() -> None:
    gone = examine([torch.full((1000,), 1e-6)], [0.1], [torch.ones(1000)])
    assert "vanished" in str(gone.message)
    dead = examine([torch.full((1000,), 0.1)], [0.1], [torch.cat([torch.zeros(995), torch.ones(5)])])
    assert "exactly 0" in str(dead.message)
    well = examine([torch.rand(1000) * 0.1 + 1e-3], [0.1], [torch.cat([torch.zeros(900), torch.ones(100)])])
    assert well.message is None


def test_a_std_that_is_no_number_has_exploded() -> None:
    sick = examine([torch.ones(2), torch.tensor([0.1, torch.nan]), torch.ones(2)], [1.0] * 3, [None] * 3)
    assert "exploded to inf" in str(sick.message)


def test_vanishing_is_noticed_during_training() -> None:
    p = nn.Parameter(torch.zeros(50))
    optimizer = shared_bgd([p], std_init=1.0, mc_samples=50, antithetic=True)

    def closure() -> torch.Tensor:
        loss = 1e7 * p.square().sum()  # a very steep valley: every weight becomes certain
        loss.backward()
        return loss

    def train() -> None:
        for _ in range(7):
            optimizer.step(closure)

    with pytest.warns(CollapseWarning, match="vanished"):
        train()


def test_stds_never_become_denormal() -> None:
    p = nn.Parameter(torch.ones(50))
    optimizer = shared_bgd([p], std_init=1.0, mc_samples=2, antithetic=True)

    def closure() -> torch.Tensor:
        loss = (1e30 * p * p.detach().sign() + 1e30 * (p - 1).abs()).sum()
        loss.backward()
        return loss

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        for _ in range(10):
            optimizer.step(closure)
    std = optimizer.state[p]["std"]
    assert bool((std * std >= torch.finfo(torch.float32).tiny).all())


@pytest.mark.parametrize(("dead_steps", "warns"), [(1, False), (30, False), (40, True)])
def test_dead_gradients_count_only_when_they_last(dead_steps: int, warns: bool) -> None:
    """A single batch of one label has no gradient under the labels trick; a network that never has one is dead."""
    p = nn.Parameter(torch.ones(20))
    optimizer = shared_bgd([p], std_init=0.1)
    factor = 1.0

    def closure() -> torch.Tensor:
        loss = factor * p.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    factor = 0.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(dead_steps):
            optimizer.step(closure)
    assert bool(caught) == warns


def test_the_last_batch_of_every_epoch_may_have_no_gradient() -> None:
    """With ten steps an epoch every hundredth step is a last batch: it must not be all that is looked at."""
    p = nn.Parameter(torch.ones(20))
    optimizer = shared_bgd([p], std_init=0.1, std_max="init")

    def closure() -> torch.Tensor:
        factor = 0.0 if optimizer.steps % 10 == 9 else 1e-3
        loss = factor * p.square().sum()
        loss.backward()
        return loss

    for _ in range(1000):
        optimizer.step(closure)  # a warning would be an error here


@pytest.mark.parametrize(("bad_in_a_row", "warns"), [(49, False), (50, True)])
def test_many_skipped_batches_are_warned_of(bad_in_a_row: int, warns: bool) -> None:
    p = nn.Parameter(torch.ones(20))
    optimizer = shared_bgd([p], std_init=0.1, nonfinite="skip")
    factor = float("nan")

    def closure() -> torch.Tensor:
        loss = factor * p.square().sum()
        loss.backward()
        return loss

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(bad_in_a_row):
            optimizer.step(closure)
            if optimizer.steps == 20:  # as a resumed run does
                fresh = shared_bgd([p], std_init=0.1, nonfinite="skip")
                fresh.load_state_dict(optimizer.state_dict())
                optimizer = fresh
        factor = 1e-3
        optimizer.step(closure)
        factor = float("nan")
        for _ in range(30):  # not in a row with those before
            optimizer.step(closure)
    assert [w.filename for w in caught if "none had a finite gradient" in str(w.message)] == [__file__] * warns


def test_rows_of_an_embedding_that_no_batch_uses_are_not_dead() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(5_000, 4), nn.Flatten(), nn.Linear(4, 2))
    optimizer = shared_bgd(model.parameters(), std_init=0.01)

    def closure() -> torch.Tensor:
        words = torch.randint(5_000, (8, 1))
        loss = F.cross_entropy(model(words), words[:, 0] % 2, reduction="sum")
        loss.backward()
        return loss

    for _ in range(50):
        optimizer.step(closure)  # a warning would be an error here


@pytest.mark.parametrize("path", ["loop", "batched", "implicit"])
def test_where_warnings_are_errors_the_step_is_taken_once(path: str) -> None:
    """The natural way to stop on a collapse: the error reaches the user, and the posterior is that of the step."""
    torch.manual_seed(0)
    model = nn.Linear(4, 3, bias=False)
    x = torch.randn(8, 4)
    optimizer = shared_bgd(
        model.parameters(), std_init=0.1, std_max=None, implicit_iterations=2 if path == "implicit" else 1
    )

    def objective(net, x) -> torch.Tensor:
        return net(x).square().sum()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = objective(model, x)
        loss.backward()
        return loss

    batched = optimizer.batched(model, objective, compile=False)

    def step() -> None:
        batched(x) if path == "batched" else optimizer.step(closure)

    for _ in range(6):
        step()
    optimizer.state[model.weight]["std"][0, 0] = 1e6
    before = optimizer.state[model.weight]["std"].clone()
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapseWarning)
        with pytest.raises(CollapseWarning, match="by step 7"):
            step()
    assert optimizer.steps == 7
    assert not torch.equal(optimizer.state[model.weight]["std"], before)
    assert torch.equal(optimizer.state[model.weight]["mean"], model.weight)


@pytest.mark.parametrize("std_max", ["init", None])
def test_an_uneven_std_at_the_start_is_no_collapse(std_max) -> None:
    p = nn.Parameter(torch.zeros(1000))
    stds = torch.full((1000,), 1e-5)
    stds[0] = 1.0
    optimizer = shared_bgd([p], std_init=stds, std_max=std_max)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = 1e-3 * p.square().sum()
        loss.backward()
        return loss

    for _ in range(7):
        optimizer.step(closure)  # a warning would be an error here
    optimizer.state[p]["std"][1] = 0.1  # in itself small, but 10,000 times what it was
    assert examine([optimizer.state[p]["std"]], [stds], [None]).has_exploded


def test_a_part_outside_the_graph_is_not_dead() -> None:
    """A backbone run under no_grad, beside a small head that learns."""
    torch.manual_seed(0)
    backbone, head = nn.Linear(4, 2_000), nn.Linear(2_000, 2)
    optimizer = shared_bgd([*backbone.parameters(), *head.parameters()], std_init=0.01)
    head_only = torch.randn(16, 4)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        with torch.no_grad():
            features = backbone(head_only)[:, :4]
        loss = F.cross_entropy(F.linear(features, head.weight[:, :4], head.bias), torch.arange(16) % 2, reduction="sum")
        loss.backward()
        return loss

    before = backbone.weight.clone()
    head.weight.requires_grad_(False)
    for _ in range(60):
        optimizer.step(closure)  # a warning would be an error here
    assert torch.equal(backbone.weight, before)


# --- settings that do not suit the network


def train_a_while(steps: int, **settings: Any) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 50), nn.ReLU(), nn.Linear(50, 2))
    optimizer = BGD(model.parameters(), seed=1, **settings)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        x = torch.randn(8, 20, generator=generator)
        optimizer.zero_grad()
        F.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
        optimizer.step()


def test_the_default_is_not_warned_of() -> None:
    train_a_while(100)


def test_a_network_that_hardly_moves_is_named_with_the_setting_to_change() -> None:
    with pytest.warns(SettingsWarning, match="hardly learn: raise std_init"):
        train_a_while(98, std_init=1e-4)


def test_noise_that_drowns_the_signal_is_named() -> None:
    with pytest.warns(SettingsWarning, match="drowns what they compute: lower std_init"):
        train_a_while(1, std_init=3.0)


def test_a_habit_from_adam_is_warned_of_or_impossible() -> None:
    p = nn.Parameter(torch.zeros(2))
    with pytest.raises(TypeError):
        BGD([p], 1e-3)  # type: ignore[misc]
    with pytest.warns(UserWarning, match="Leave lr at 1"):
        BGD([p], lr=1e-3)


@pytest.mark.filterwarnings("ignore::bgd.SettingsWarning")
def test_a_too_large_std_names_std_init_and_not_the_data() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 2))
    optimizer = BGD(model.parameters(), std_init=1e15, seed=1)

    def step() -> None:
        optimizer.zero_grad()
        model(torch.randn(4, 4)).square().square().mean().backward()
        optimizer.step()

    with pytest.raises(FloatingPointError, match="std_init"):
        train(step, 5)


def train(step: Callable[[], None], steps: int) -> None:
    for _ in range(steps):
        step()


def test_a_collapse_between_two_checks_is_noticed_when_asked_at_the_end() -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = BGD(model.parameters())
    optimizer.check_posterior()  # nothing has begun
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapseWarning)
        optimizer.check_posterior()  # a sound posterior
        optimizer.state[model.weight]["std"].mul_(1e9)
        with pytest.raises(CollapseWarning, match=r"by step 1.*exploded"):
            optimizer.check_posterior()
