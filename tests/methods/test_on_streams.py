"""Learners on real streams of real images: the embedded digits."""

from __future__ import annotations

import pytest

from bgd.data import load
from bgd.methods import create
from bgd.nets import MLP
from bgd.scenarios import UNIT, Discrete, Joint, scenario, split


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def accuracies(name, where, digits, epochs=6, **settings) -> list[float]:
    """On each of the five tasks, after the last."""
    found = scenario(where)
    tasks = split(digits, 5, shared_head=found.shared_head, normalise=UNIT)
    stream = (Joint if name == "offline" else Discrete)(tasks, found, epochs=epochs, batch_size=32, seed=1)
    net = MLP(tasks.shape, tasks.heads.outputs, (50, 50), init="torch", seed=1)
    learner = create(name, net, tasks.heads, found, **settings)
    task = 0
    for i in range(len(stream)):
        learner.observe(*stream.batch(i))
        if stream.reveals_boundary_at(i) and not learner.joint:
            learner.end_task(stream.train_batches(task))
            task += 1
    scores = []
    for t in range(5):
        right = [learner.predict(b.x, b.task).argmax(1) == b.y for b in stream.test_batches(t)]
        scores.append(sum(int(r.sum()) for r in right) / sum(len(r) for r in right))
    return scores


def average(scores: list[float]) -> float:
    return sum(scores) / len(scores)


@pytest.mark.parametrize("where", ["task", "class"])
def test_offline_is_an_upper_bound(where, digits):
    adam, offline = (average(accuracies(name, where, digits, epochs=12, lr=0.005)) for name in ("adam", "offline"))
    assert offline > 0.9
    assert offline > adam + 0.03


def test_class_learning_forgets_all_but_the_last_task_and_the_trick_helps(digits):
    plain, trick = (accuracies("sgd", "class", digits, epochs=10, lr=0.02, labels_trick=on) for on in (False, True))
    assert sum(plain[:4]) < 0.05
    assert sum(trick[:4]) > 0.5


@pytest.fixture(scope="module")
def adam(digits):
    return accuracies("adam", "task", digits, epochs=30, lr=0.01)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("ewc", {"coefficient": 1000.0}),
        ("si", {"coefficient": 30.0}),
        ("mas", {"coefficient": 1.0}),
        ("lwf", {}),
    ],
)
def test_methods_against_forgetting_forget_less_than_adam(name, settings, digits, adam):
    method = accuracies(name, "task", digits, epochs=30, lr=0.01, **settings)
    assert average(method) > average(adam) + 0.02
