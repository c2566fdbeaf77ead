"""A state dict is loaded whole or not at all, whatever is wrong with it, and the error names the entry."""

import copy
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_bgd import shared_bgd
from torch import Tensor, nn

from bgd import BGD

Path = tuple[Any, ...]


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def per_example(model: nn.Module) -> BGD:
    optimizer = BGD(model.named_parameters(), std_init=lambda p: 0.1 + 0.1 * torch.rand_like(p), seed=3)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.ones(5, 4)), torch.zeros(5, dtype=torch.long)).backward()
        optimizer.step()
    return optimizer


def shared(model: nn.Module) -> BGD:
    first, last = model[0], model[2]
    optimizer = shared_bgd([{"params": first.parameters(), "lr": 0.5}, {"params": last.parameters()}], seed=3)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = model(torch.ones(5, 4)).square().sum()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    with optimizer.sampled():
        return optimizer


MAKERS: dict[str, Callable[[nn.Module], BGD]] = {"per example": per_example, "shared": shared}


def entries(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every entry of a nested state dict, the containers too."""
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from entries(value[key], (*path, key))


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


WRONG: tuple[Any, ...] = (None, "seven", -1, 10**9, 1.5, float("nan"), float("inf"), [], {}, (), object(), True)
WRONG_TENSORS: tuple[Callable[[Tensor], Any], ...] = (
    lambda t: t.flatten()[:-1],
    lambda t: t.unsqueeze(0),
    lambda t: t.to(torch.int64),
    lambda t: t.to(torch.bfloat16),
    lambda t: t.to(torch.complex64),
    lambda t: t.to("meta"),
    lambda t: t.to_sparse(),
    lambda t: torch.full_like(t, float("nan")),
    lambda t: torch.full_like(t, float("inf")),
    lambda t: t.double() * 1e300,
)
WRONG_STDS: tuple[Callable[[Tensor], Any], ...] = (
    lambda t: -t,
    torch.zeros_like,
    lambda t: t * 1e-30,
    lambda t: t.index_fill(0, torch.tensor([0]), -1.0),
)


def mutants(saved: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    """What may be wrong with a state dict: (entry, what it holds instead); ``KeyError`` for an entry that is gone."""
    for path in entries(saved):
        old = at(saved, path)
        yield path, KeyError
        plain = old is None or isinstance(old, int | float)
        possible = (10**9, 1.5, float("inf")) if plain and path[-1] != "mc_samples" else ()  # some numbers may be these
        yield from ((path, wrong) for wrong in WRONG if wrong not in possible and repr(wrong) != repr(old))
        if isinstance(old, Tensor):
            for change in (*WRONG_TENSORS, *(WRONG_STDS if "std" in path[-1] else ())):
                yield path, change(old)
        if isinstance(old, dict):
            yield (*path, "surprise"), 1
        if isinstance(old, list):
            yield path, [*old, 0]


def mutated(saved: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(saved)
    holder = at(changed, path[:-1])
    if value is KeyError:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return changed


def content(optimizer: BGD, model: nn.Module) -> list[Any]:
    """All that loading could change."""
    states = [(name, t.clone()) for p in model.parameters() for name, t in optimizer.state[p].items()]
    groups = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    return [states, groups, copy.deepcopy(optimizer._own_state()), [p.detach().clone() for p in model.parameters()]]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def check(optimizer: BGD, model: nn.Module, mutant: dict[str, Any], path: Path, before: list[Any]) -> bool:
    """Whether a mutant was refused; if not, what it led to must be sound."""
    refused = ""
    try:
        optimizer.load_state_dict(mutant)
    except ValueError as error:
        refused = str(error)
    if refused:
        assert same(content(optimizer, model), before), path
        assert any(str(key) in refused for key in path), (path, refused)
        return True
    for p in model.parameters():
        own = optimizer.state[p]
        assert bool((own["std"] > 0).all())
        assert all(bool(value.isfinite().all()) for value in own.values())
        assert own["mean"].shape == own["std"].shape == p.shape
    return False


@pytest.mark.parametrize("kind", MAKERS)
def test_every_mutant_is_refused_whole_or_sound(kind: str) -> None:
    model = network()
    optimizer = MAKERS[kind](model)
    saved = copy.deepcopy(optimizer.state_dict())
    before, refused, total = content(optimizer, model), 0, 0
    for path, value in mutants(saved):
        total += 1
        if check(optimizer, model, mutated(saved, path, value), path, before):
            refused += 1
        else:
            optimizer.load_state_dict(saved)
    assert total > 600
    assert refused > 0.9 * total  # the rest are values that the entry may have: 1.5 for lr, True for antithetic


@pytest.mark.parametrize("kind", MAKERS)
def test_an_entry_that_is_missing_is_always_refused(kind: str) -> None:
    model = network()
    optimizer = MAKERS[kind](model)
    saved = copy.deepcopy(optimizer.state_dict())
    before = content(optimizer, model)
    for path in entries(saved):
        optional = path[-1] in ("param_names", "differentiable") or (path[0] == "state" and path[-1] == "std_init")
        if not optional and "compiled" not in path[:-1]:
            with pytest.raises(ValueError, match="Nothing has been loaded"):
                optimizer.load_state_dict(mutated(saved, path, KeyError))
            assert same(content(optimizer, model), before)


@settings(max_examples=60)
@given(picks=st.lists(st.integers(0, 10**6), min_size=2, max_size=4))
def test_several_entries_at_once(picks: list[int], subject: tuple[Any, ...]) -> None:
    model, optimizer, saved, before, known = subject
    mutant, paths = saved, []
    for path, value in (known[pick % len(known)] for pick in picks):
        with suppress(KeyError, IndexError, TypeError):  # the entry may be gone already
            mutant = mutated(mutant, path, value)
            paths.append(path)
    if not check(optimizer, model, mutant, tuple(key for path in paths for key in path), before):
        optimizer.load_state_dict(saved)


@pytest.fixture(scope="module")
def subject() -> tuple[Any, ...]:
    model = network()
    optimizer = shared(model)
    saved = copy.deepcopy(optimizer.state_dict())
    return model, optimizer, saved, content(optimizer, model), list(mutants(saved))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("state", 1, "std"), KeyError, r"state\[1\] has no 'std'"),
        (("state", 0, "mean"), torch.zeros(4, 3), r"state\[0\]\['mean'\] has the shape \(4, 3\).*'0.weight' \(3, 4\)"),
        (("state", 1, "std"), torch.tensor([0.1, -0.1, 0.1]), r"state\[1\]\['std'\] holds -0.1"),
        (("param_groups", 0, "std_init"), 0.0, r"param_groups\[0\]\['std_init'\] is 0.0"),
        (("param_groups", 0, "lr"), -1.0, r"param_groups\[0\]\['lr'\] is -1.0"),
        (("bgd", "mc_samples"), 10**9, r"bgd\['mc_samples'\] is 1000000000"),
        (("bgd", "noise"), "cuda", r"bgd\['noise'\] is 'cuda'"),
        (("bgd", "steps"), KeyError, "'bgd' has no 'steps'"),
        (("bgd", "shared_params"), [9], r"bgd\['shared_params'\] is \[9\]: there are 4"),
        (("bgd", "antithetic"), True, r"bgd\['mc_samples'\] is 1, and antithetic"),
        (("state", 7), {}, "'state' has an unknown 7"),
        (("extra",), 1, "the state dict has an unknown 'extra'"),
        (("param_groups",), [], "param_groups has 0 groups, and the optimizer 1"),
    ],
)
def test_the_error_names_the_entry_and_what_is_wrong_with_it(path: Path, value: Any, message: str) -> None:
    model = network()
    optimizer = per_example(model)
    with pytest.raises(ValueError, match=message):
        optimizer.load_state_dict(mutated(copy.deepcopy(optimizer.state_dict()), path, value))


def test_a_state_dict_of_float64_that_float32_cannot_hold_is_refused() -> None:
    wide, narrow = network().double(), network()
    saved = BGD(wide.parameters(), std_init=1e-100, lr=1.0).state_dict()
    with pytest.raises(ValueError, match=r"state\[0\]\['std'\] holds 1e-100, and lies from 2.2e-19"):
        BGD(narrow.parameters()).load_state_dict(saved)


def test_too_many_samples_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="at most 1,000,000, got 1000000000"):
        BGD(network().parameters(), mc_samples=10**9)
