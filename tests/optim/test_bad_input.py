"""Bad input to predict and find_std_init: one clear line, the model and the optimizer as they were."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from bgd import BGD, predict
from bgd.optim.finder import find_std_init

X, Y = torch.zeros(5, 3), torch.tensor([0, 1, 0, 1, 1])
MASK = torch.tensor([True, False])

PREDICT = [
    ({"inputs": None}, "inputs is a NoneType: give a batch"),
    ({"inputs": 7}, "inputs is a int: give a batch"),
    ({"inputs": "abc"}, "a batch must be a tensor"),
    ({"inputs": [1.0]}, "a batch must be a tensor"),
    ({"inputs": []}, "there are no inputs"),
    ({"inputs": np.zeros((5, 3))}, "got ndarray"),
    ({"inputs": ()}, "a batch must be a tensor"),
    ({"model": None}, "the model is a NoneType"),
    ({"model": cross_entropy}, "the model is a function"),
    ({"optimizer": torch.optim.SGD([X.clone().requires_grad_()], 0.1)}, "the optimizer is a SGD, which has no poster"),
    ({"samples": -1}, "samples=-1: must be a whole number from 0"),
    ({"samples": 1.5}, "samples=1.5"),
    ({"samples": float("nan")}, "samples=nan"),
    ({"samples": "3"}, "samples='3'"),
    ({"samples": True}, "samples=True"),
    ({"samples": None}, "samples=None"),
    ({"samples": 10**12}, "samples must be at most 1,000,000"),
    ({"kind": None}, "kind=None: choose one of"),
    ({"outputs": [True, False]}, "outputs must be a mask .* got list"),
    ({"outputs": torch.tensor([0, 1])}, "outputs must be a mask .* got torch.int64"),
    ({"outputs": torch.ones(2)}, "outputs must be a mask .* got torch.float32"),
    ({"outputs": ~MASK & MASK}, "some output is True"),
    ({"outputs": torch.ones(3).bool()}, "masks 3 classes, but the model has 2"),
    ({"outputs": MASK, "kind": "values"}, "chooses among classes"),
    ({"forward": "x"}, "forward is a str"),
    ({"forward": lambda net, batch: None}, "the model returned NoneType"),
]


@pytest.mark.parametrize(("arguments", "message"), PREDICT)
def test_predict_refuses_it_and_draws_the_same_networks_afterwards(arguments, message):
    model = nn.Linear(3, 2)
    optimizer = BGD(model.parameters(), seed=0)
    before, state = optimizer.samples_drawn, copy.deepcopy(model.state_dict())
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        predict(**{"model": model, "optimizer": optimizer, "inputs": X, "samples": 2} | arguments)
    assert "\n" not in str(caught.value)
    assert optimizer.samples_drawn == before
    assert model.training
    assert all(torch.equal(state[name], part) for name, part in model.state_dict().items())


FIND = [
    ({"model": cross_entropy}, "the model is a function"),
    ({"model": nn.Linear(3, 2).requires_grad_(False)}, "no parameter requires a gradient"),
    ({"loss": None}, "the loss is NoneType"),
    ({"loss": nn.CrossEntropyLoss}, "the loss is CrossEntropyLoss: give a function"),
    ({"batches": None}, "batches is a NoneType"),
    ({"batches": []}, "there are no batches"),
    ({"batches": [(X * float("nan"), Y)]}, "gives a finite loss"),
    *(
        ({"factors": wrong}, "factors must be positive numbers, got")
        for wrong in (None, 1.0, (), (0,), (1.0, float("nan")), (float("inf"),), ("a",), [[1.0]])
    ),
    ({"factors": (1e30,)}, "std_init must be positive and finite"),
    ({"std_init": 0.1}, "std_init is what is searched for"),
    ({"lr": float("nan")}, "must be a finite number"),
]


@pytest.mark.parametrize(("arguments", "message"), FIND)
def test_find_std_init_refuses_it_and_leaves_the_model(arguments, message):
    model = nn.Linear(3, 2)
    state = copy.deepcopy(model.state_dict())
    with pytest.raises((TypeError, ValueError, RuntimeError), match=message) as caught:
        find_std_init(**{"model": model, "loss": cross_entropy, "batches": [(X, Y)]} | arguments)
    assert "\n" not in str(caught.value)
    assert all(torch.equal(state[name], part) for name, part in model.state_dict().items())


def test_factors_may_be_any_numbers():
    for factors in (torch.tensor([0.5, 1.0]), np.array([0.5, 1.0]), (factor for factor in (0.5, 1.0))):
        assert list(find_std_init(nn.Linear(3, 2), cross_entropy, [(X, Y)], factors).losses) == [0.5, 1.0]
