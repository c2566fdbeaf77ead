"""States of exact learners that anybody may have written: refused whole, or sound."""

import contextlib
import copy
import random

import pytest
import torch
from attacks import attacks

from bgd.exact.features import Fourier
from bgd.exact.head import ExactError
from bgd.exact.learner import ExactLearner


def make(seen=40):
    learner = ExactLearner(lambda shape: Fourier(shape, 10, seed=0), outputs=2, block=16)
    x = torch.randn(seen, 3)
    for i in range(0, seen, 8):
        learner.learn(x[i : i + 8], torch.eye(2)[(x[i : i + 8, 0] > 0).long()])
    return learner, x


def paths(value, path=()):
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from paths(part, (*path, key))


WRONG = (
    None,
    7,
    -1.0,
    "seven",
    [],
    {},
    torch.zeros(2, 2),
    torch.tensor(float("nan")),
    torch.zeros(1, dtype=torch.int8),
)


def mutants(state, pick, count):
    known = list(paths(state))
    for _ in range(count):
        changed, path = copy.deepcopy(state), pick.choice(known)
        holder = changed
        for key in path[:-1]:
            holder = holder[key]
        old, kind = holder[path[-1]], pick.randrange(len(WRONG) + 3)
        if kind < len(WRONG):
            holder[path[-1]] = WRONG[kind]
        elif kind == len(WRONG):
            del holder[path[-1]]
        elif isinstance(old, torch.Tensor):
            holder[path[-1]] = old.double() * float("inf") if kind % 2 else old[None]
        yield changed


def test_every_mutant_of_a_state_is_refused_whole_or_sound():
    learner, x = make()
    state, refused = learner.state_dict(), 0
    assert state["known"] is not None
    assert state["pending"]
    for mutant in mutants(state, random.Random(0), attacks(120)):
        other, _ = make(24)
        before = copy.deepcopy(other.state_dict())
        try:
            other.load_state_dict(mutant)
        except ExactError as error:
            message = str(error)
        else:
            with contextlib.suppress(ExactError):  # values that features may have, and that make none
                assert torch.isfinite(other.solution().mean(x)).all()
            continue
        refused += 1
        assert "\n" not in message
        after = other.state_dict()
        assert [list(paths(one)) for one in (before, after)] == [list(paths(before))] * 2
        assert all(map(torch.equal, before["known"]["sums"], after["known"]["sums"]))
    assert refused > attacks(120) // 2


def test_a_state_of_other_features_is_refused():
    state = make()[0].state_dict()
    other = ExactLearner(lambda shape: Fourier(shape, 12, seed=0), outputs=2)
    with pytest.raises(ExactError, match="of another learner"):
        other.load_state_dict(state)
    assert other.known is None
