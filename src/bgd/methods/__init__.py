"""Learners: one method per file, named as the paper names it.

>>> import torch
>>> from bgd.scenarios.heads import Heads
>>> from bgd.scenarios.types import Knowledge
>>> from bgd.scenarios.types import Scenario
>>> domain = Scenario("domain", Knowledge.TASK_ID, task_in_testing=False, shared_head=True)
>>> learner = create("online-ewc", torch.nn.Linear(4, 2), Heads(2, ((0, 1),)), domain, coefficient=700)
>>> learner.observe(torch.zeros(8, 4), torch.ones(8, dtype=torch.int64)) > 0
True
"""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import Any

from torch import nn

from bgd import plugins
from bgd.errors import suggest
from bgd.methods.adagrad import Adagrad
from bgd.methods.adam import Adam
from bgd.methods.bbb import BBB
from bgd.methods.bgd import BGDLearner
from bgd.methods.common.base import Base
from bgd.methods.common.likelihoods import Categorical, Gaussian, Likelihood
from bgd.methods.common.outputs import Outputs, Over
from bgd.methods.common.penalised import Penalised
from bgd.methods.common.types import Learner, MethodError
from bgd.methods.ewc import EWC
from bgd.methods.kfac import KFAC
from bgd.methods.l2 import L2
from bgd.methods.laplace import Laplace
from bgd.methods.lwf import LwF
from bgd.methods.mas import MAS
from bgd.methods.noisy_adam import NoisyAdam
from bgd.methods.noisy_kfac import NoisyKFAC
from bgd.methods.offline import Offline
from bgd.methods.online_ewc import OnlineEWC
from bgd.methods.sgd import SGD
from bgd.methods.si import SI
from bgd.methods.vcl import VCL
from bgd.scenarios.heads import Heads
from bgd.scenarios.types import Knowledge, Scenario

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
    "offline": Offline,
}
"""Every method by name: one line each."""


def create(
    name: str,
    net: nn.Module,
    heads: Heads,
    scenario: Scenario,
    *,
    labels_trick: bool = False,
    loss_over: Over | None = None,
    likelihood: Likelihood | None = None,
    **settings: Any,
) -> Learner:
    """A learner by name, once it is certain that it can run in the scenario.

    Args:
        name: a key of :data:`METHODS`.
        net: any module that maps (B, ...) to scores (B, ``heads.outputs``).
        heads: which outputs belong to which task.
        scenario: what the learner will be told.
        labels_trick: the training loss runs over the labels present in the batch.
        loss_over: the outputs of the training loss: "all"; "task", the head of the given task; "seen", the
            labels met so far (as Hsu et al. in class learning); "batch", the labels trick. By default "task"
            with separate heads and the task known in training and testing, else "all".
        likelihood: what the scores mean; classification by default.
        **settings: of the method, see :func:`settings_of`.

    Raises:
        MethodError: for an unknown name or setting, or a need that the scenario does not meet.

    >>> agnostic = Scenario("discrete task-agnostic", Knowledge.NOTHING, False, True)
    >>> create("ewc", nn.Linear(4, 2), Heads(2, ((0, 1),)), agnostic)
    Traceback (most recent call last):
    bgd.methods.common.types.MethodError: 'ewc' needs BOUNDARIES, but the scenario 'discrete task-agnostic' reveals \
NOTHING. Alternatives: online-ewc with consolidate_every=1; mas with consolidate_every=1; sgd; adam...
    """
    method = find(name)
    _check_settings(name, settings)
    over = _loss_over(scenario, labels_trick, loss_over)
    outputs = Outputs(heads, over, likelihood)
    learner = method(net, outputs, **settings)
    if forgotten := [attribute for attribute in learner.state_attributes if not hasattr(learner, attribute)]:
        raise MethodError(
            f"{name!r} lists {forgotten[0]!r} in state_attributes, and has no such attribute once it is made"
        )
    if learner.needs > scenario.reveals:
        raise MethodError(
            f"{name!r} needs {learner.needs.name}, but the scenario {scenario.name!r} reveals "
            f"{scenario.reveals.name}. Alternatives: {'; '.join(_alternatives(scenario.reveals))}"
        )
    return learner


def find(name: str) -> type[Base]:
    """The class of a method.

    >>> find("online-ecw")
    Traceback (most recent call last):
    bgd.methods.common.types.MethodError: no method 'online-ecw': did you mean 'online-ewc'?
    """
    try:
        method: type[Base] = plugins.find(name, METHODS, "method", "bgd.methods")
    except plugins.PluginError as error:
        raise MethodError(str(error)) from error
    return method


def settings_of(name: str) -> dict[str, Any]:
    """The settings of a method with their defaults; its class documents them.

    >>> settings_of("adam")
    {'lr': 0.001}
    """
    parameters = inspect.signature(find(name)).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def code_of(name: str) -> str:
    """A short name for the source of a method's file as it is now; empty where there is none to read.

    >>> len(code_of("sgd")), code_of("sgd") == code_of("adam")
    (12, False)
    """
    try:
        file = inspect.getsourcefile(find(name))
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12] if file else ""
    except (OSError, TypeError):  # typed in by hand
        return ""


def _check_settings(name: str, settings: dict[str, Any]) -> None:
    known = list(settings_of(name))
    for setting in settings:
        if setting not in known:
            hint = suggest(setting, known) if known else "settings are the arguments of __init__ after a *"
            raise MethodError(f"{name!r} has no setting {setting!r}: {hint}")


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
    adapted = [f"{n} with consolidate_every=1" for n in METHODS if "consolidate_every" in settings_of(n)]
    return adapted + [n for n, method in METHODS.items() if method.needs <= reveals and not method.joint]


__all__ = [
    "BBB",
    "EWC",
    "KFAC",
    "L2",
    "MAS",
    "METHODS",
    "SGD",
    "SI",
    "VCL",
    "Adagrad",
    "Adam",
    "BGDLearner",
    "Base",
    "Categorical",
    "Gaussian",
    "Laplace",
    "Learner",
    "Likelihood",
    "LwF",
    "MethodError",
    "NoisyAdam",
    "NoisyKFAC",
    "Offline",
    "OnlineEWC",
    "Outputs",
    "Penalised",
    "create",
    "find",
    "settings_of",
]
