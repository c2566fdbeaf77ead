"""Methods by name: the package's own, those of installed packages, and classes of one's own."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from bgd.errors import suggest
from bgd.methods.adagrad import Adagrad
from bgd.methods.adam import Adam
from bgd.methods.badam import BAdamLearner
from bgd.methods.bbb import BBB
from bgd.methods.bgd import BGDLearner
from bgd.methods.bong import BONGLearner
from bgd.methods.common.base import Base
from bgd.methods.common.likelihoods import Likelihood, LossFunction, find_likelihood
from bgd.methods.common.outputs import Outputs, Over
from bgd.methods.common.types import Learner, MethodError
from bgd.methods.continual_backprop import ContinualBackpropLearner
from bgd.methods.ewc import EWC
from bgd.methods.exact_head import ExactHead
from bgd.methods.foovb import FOOVBLearner
from bgd.methods.ivon import IVONLearner
from bgd.methods.kfac import KFAC
from bgd.methods.l2 import L2
from bgd.methods.laplace import Laplace
from bgd.methods.lwf import LwF
from bgd.methods.mas import MAS
from bgd.methods.mesu import MESULearner
from bgd.methods.noisy_adam import NoisyAdam
from bgd.methods.noisy_kfac import NoisyKFAC
from bgd.methods.offline import Offline
from bgd.methods.online_ewc import OnlineEWC
from bgd.methods.sgd import SGD
from bgd.methods.si import SI
from bgd.methods.upgd import UPGDLearner
from bgd.methods.vcl import VCL
from bgd.plugins import find
from bgd.scenarios.heads import Heads
from bgd.scenarios.types import Knowledge, Scenario

GROUP = "bgd.methods"
"""Entry points of installed packages that name a method."""

METHODS: dict[str, type[Base]] = {
    "sgd": SGD,
    "adam": Adam,
    "adagrad": Adagrad,
    "l2": L2,
    "ewc": EWC,
    "online-ewc": OnlineEWC,
    "si": SI,
    "mas": MAS,
    "lwf": LwF,
    "laplace": Laplace,
    "vcl": VCL,
    "bbb": BBB,
    "noisy-adam": NoisyAdam,
    "kfac": KFAC,
    "noisy-kfac": NoisyKFAC,
    "bgd": BGDLearner,
    "mesu": MESULearner,
    "bong": BONGLearner,
    "ivon": IVONLearner,
    "badam": BAdamLearner,
    "foo-vb": FOOVBLearner,
    "upgd": UPGDLearner,
    "continual-backprop": ContinualBackpropLearner,
    "exact-head": ExactHead,
    "offline": Offline,
}
"""The package's own methods by name: one line each."""


def find_method(name: str | type[Learner]) -> type[Learner]:
    """The class of a method: built-in, an entry point of ``bgd.methods``, or ``"module:Class"``; or the class itself.

    >>> find_method("bgd.methods.sgd:SGD") is find_method("sgd") is find_method(SGD)
    True
    >>> find_method("online-ecw")
    Traceback (most recent call last):
    bgd.plugins.PluginError: no method 'online-ecw': did you mean 'online-ewc'?
    >>> find_method("collections:Counter")
    Traceback (most recent call last):
    bgd.methods.common.types.MethodError: method 'collections:Counter' is no learner (no 'observe', ...): derive ...
    """
    found = find(name, METHODS, "method", GROUP) if isinstance(name, str) else name
    title = repr(name if isinstance(name, str) else getattr(name, "__name__", name))
    if not isinstance(found, type):
        raise MethodError(
            f"method {title} is a {type(found).__name__}, not a class: name a class derived from bgd.methods.Base"
        )
    if not issubclass(found, Base) and (missing := [m for m in _MEMBERS if not hasattr(found, m)]):
        what = ", ".join(map(repr, missing))
        raise MethodError(f"method {title} is no learner (no {what}): derive the class from bgd.methods.Base")
    if not isinstance(needs := getattr(found, "needs", None), Knowledge):
        known = ", ".join(f"Knowledge.{one.name}" for one in Knowledge)
        raise MethodError(f"method {title}: needs is {needs!r}: choose one of {known}")
    return found


_MEMBERS = (
    *("observe", "end_task", "predict", "state_dict", "load_state_dict"),
    *("needs", "joint", "upper_bound", "train_size_per_task"),
)
"""Of the protocol :class:`Learner`."""


def settings_of(name: str | type[Learner]) -> dict[str, Any]:
    """The settings of a method with their defaults; its class documents them.

    >>> settings_of("adam")
    {'lr': 0.001}
    """
    parameters = inspect.signature(find_method(name)).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def create(
    name: str | type[Learner],
    net: nn.Module,
    heads: Heads,
    scenario: Scenario,
    *,
    labels_trick: bool = False,
    loss_over: Over | None = None,
    likelihood: str | LossFunction | Likelihood | None = None,
    **settings: Any,
) -> Learner:
    """A learner by name, after checking that it can run in the scenario.

    Args:
        name: of the method, see :func:`find_method`; or its class.
        net: any module that maps (B, ...) to scores (B, ``heads.outputs``).
        heads: which outputs belong to which task.
        scenario: what is revealed to the learner.
        labels_trick: the training loss runs over the labels present in the batch.
        loss_over: the outputs of the training loss: "all"; "task", the head of the given task; "seen", the
            labels seen so far (as Hsu et al. in class learning); "batch", the labels trick. By default "task"
            with separate heads and the task known in training and testing, else "all".
        likelihood: the loss, see :func:`~bgd.methods.common.likelihoods.find_likelihood`; cross-entropy by default.
        **settings: of the method, see :func:`settings_of`.

    Raises:
        MethodError: for an unknown setting, or a need that the scenario does not meet.
        PluginError: for an unknown name.

    >>> agnostic = Scenario("discrete task-agnostic", Knowledge.NOTHING, False, True)
    >>> create("ewc", nn.Linear(4, 2), Heads(2, ((0, 1),)), agnostic)
    Traceback (most recent call last):
    bgd.methods.common.types.MethodError: 'ewc' needs BOUNDARIES, but the scenario 'discrete task-agnostic' reveals \
NOTHING. Alternatives: online-ewc with consolidate_every=1; mas with consolidate_every=1; sgd; adam...
    """
    method = find_method(name)
    title = name if isinstance(name, str) else name.__name__
    _check_settings(title, list(settings_of(method)), settings)
    over = _loss_over(scenario, labels_trick, loss_over)
    outputs = Outputs(heads, over, None if likelihood is None else find_likelihood(likelihood))
    learner: Learner = method(net, outputs, **settings)  # type: ignore[call-arg]
    for attribute in getattr(learner, "state_attributes", ()):
        if not hasattr(learner, attribute):
            raise MethodError(f"{title!r} lists {attribute!r} in state_attributes, but its __init__ does not set it")
    if learner.needs > scenario.reveals:
        raise MethodError(
            f"{title!r} needs {learner.needs.name}, but the scenario {scenario.name!r} reveals "
            f"{scenario.reveals.name}. Alternatives: {'; '.join(_alternatives(scenario.reveals))}"
        )
    return learner


def _check_settings(title: str, known: list[str], settings: dict[str, Any]) -> None:
    for setting in settings:
        if setting not in known:
            hint = suggest(setting, known) if known else "settings are the arguments of __init__ after a *"
            raise MethodError(f"{title!r} has no setting {setting!r}: {hint}")


def _loss_over(scenario: Scenario, labels_trick: bool, loss_over: Over | None) -> Over:
    if labels_trick and loss_over not in (None, "batch"):
        raise MethodError(f"labels_trick=True means loss_over='batch', but loss_over={loss_over!r}: choose one")
    known = scenario.reveals >= Knowledge.TASK_ID and scenario.task_in_testing
    if loss_over == "task" and scenario.reveals < Knowledge.TASK_ID:
        raise MethodError(
            f"loss_over='task' needs TASK_ID, but the scenario {scenario.name!r} reveals "
            f"{scenario.reveals.name}: use 'all', 'seen' or 'batch'"
        )
    if labels_trick:
        return "batch"
    return loss_over or ("task" if known and not scenario.shared_head else "all")


def _alternatives(reveals: Knowledge) -> list[str]:
    """Built-in methods that can run without more knowledge, those that are adapted by a setting first."""
    adapted = [f"{n} with consolidate_every=1" for n in METHODS if "consolidate_every" in settings_of(n)]
    return adapted + [n for n, method in METHODS.items() if method.needs <= reveals and not method.joint]
