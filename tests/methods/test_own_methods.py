"""Methods and losses from outside the package: by module:attribute, and by entry points."""

from __future__ import annotations

import pytest
import torch
from own_package import own_package

from bgd.methods import Base, Learner, MethodError, create, find_likelihood, find_method, settings_of
from bgd.methods.registry import METHODS

CODE = """
import torch
from torch.nn.functional import cross_entropy
from bgd.methods import Base

class Plain(Base):
    def __init__(self, net, outputs, *, lr=0.05, twice=False):
        super().__init__(net, outputs, torch.optim.SGD(net.parameters(), lr=lr))
        self.twice = twice

class NoLearner:
    def observe(self, x, y, task=None):
        return 0.0

def function(net, outputs):
    return None

number = 3

def loss(scores, y):
    return 2 * cross_entropy(scores, y, reduction="none")

"""
POINTS = {"bgd.methods": {"plain-sgd": "ownpackage:Plain"}, "bgd.losses": {"twice": "ownpackage:loss"}}


@pytest.fixture
def package(tmp_path):
    with own_package(tmp_path, CODE) as name:
        yield name


@pytest.fixture
def installed(tmp_path):
    with own_package(tmp_path, CODE, POINTS) as name:
        yield name


def make(method, scenarios, heads_of, make_net, **settings) -> Learner:
    scenario = scenarios["domain"]
    return create(method, make_net(2), heads_of(scenario), scenario, **settings)


def test_a_method_by_module_and_class(package, scenarios, heads_of, make_net, make_batches):
    method = f"{package}:Plain"
    assert settings_of(method) == {"lr": 0.05, "twice": False}
    own = make(method, scenarios, heads_of, make_net, lr=0.1)
    sgd = make("sgd", scenarios, heads_of, make_net, lr=0.1)
    for b in make_batches(0, scenarios["domain"]):
        assert own.observe(*b) == sgd.observe(*b)
    with pytest.raises(MethodError, match=rf"'{method}' has no setting 'twise': did you mean 'twice'"):
        make(method, scenarios, heads_of, make_net, twise=True)


def test_a_method_and_a_loss_by_entry_point(installed, scenarios, heads_of, make_net, make_batches):
    method = find_method("plain-sgd")
    assert method.__module__ == installed
    assert "plain-sgd" not in METHODS
    batch = make_batches(0, scenarios["domain"])[0]
    single = make("plain-sgd", scenarios, heads_of, make_net).observe(*batch)
    double = make("plain-sgd", scenarios, heads_of, make_net, likelihood="twice").observe(*batch)
    assert double == pytest.approx(2 * single)
    assert find_likelihood("twice").loss(torch.zeros(1, 2), torch.tensor([0])) == pytest.approx(
        2 * torch.log(torch.tensor(2.0)).item()
    )
    with pytest.raises(ValueError, match="no method 'plain-sdg': did you mean 'plain-sgd'"):
        find_method("plain-sdg")


def test_entry_points_are_unknown_without_the_package():
    with pytest.raises(ValueError, match="no method 'plain-sgd'"):
        find_method("plain-sgd")


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("NoLearner", r"'ownpackage:NoLearner' is no learner \(no 'end_task', .*\): derive the class from bgd.methods"),
        ("function", "'ownpackage:function' is a function, not a class: name a class derived from bgd.methods.Base"),
        ("number", "'ownpackage:number' is a int, not a class"),
        ("Plane", "ownpackage has no 'Plane': did you mean 'Plain'"),
    ],
)
def test_what_is_no_method_is_rejected_in_one_line(package, attribute, message):
    with pytest.raises(ValueError, match=message) as error:
        find_method(f"{package}:{attribute}")
    assert "\n" not in str(error.value)


def test_a_class_can_be_given_itself(package, scenarios, heads_of, make_net):
    cls = find_method(f"{package}:Plain")
    assert find_method(cls) is cls
    assert isinstance(make(cls, scenarios, heads_of, make_net, twice=True), Base)


def test_a_learner_without_base_needs_every_member_of_the_protocol(scenarios, heads_of, make_net, make_batches):
    base = create("sgd", make_net(2), heads_of(scenarios["domain"]), scenarios["domain"])

    class Wrapper:
        needs, joint, upper_bound, train_size_per_task = base.needs, False, False, False

        def __init__(self, net, outputs, *, lr=0.1):
            self.lr = lr

        def observe(self, x, y, task=None):
            return self.lr

        def end_task(self, batches=()):
            pass

        def predict(self, x, task=None):
            return base.predict(x, task)

        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            pass

    learner = make(Wrapper, scenarios, heads_of, make_net, lr=0.5)
    assert isinstance(learner, Learner)
    assert learner.observe(*make_batches(0, scenarios["domain"])[0]) == 0.5
    del Wrapper.upper_bound
    with pytest.raises(MethodError, match=r"'Wrapper' is no learner \(no 'upper_bound'\)"):
        find_method(Wrapper)
