"""From a configuration to its parts: data, tasks, stream, network, learner. Every part is a pure function of it."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import torch
from torch import nn

import bgd.data
from bgd.data.types import DataSet
from bgd.errors import BGDError
from bgd.methods import create, find, settings_of
from bgd.methods.types import Learner
from bgd.nets import MLP
from bgd.runs.types import DataConfig, NetConfig, RunConfig, RunError, Setup
from bgd.scenarios import (
    PADDED_MNIST,
    UNIT,
    Continuous,
    Discrete,
    Drifting,
    Joint,
    Scenario,
    Stream,
    TaskSet,
    limit,
    pad,
    permute,
    rotate,
    rotating,
    scenario,
    separate_heads,
    shared_heads,
    split,
)
from bgd.scenarios.cuts import Normalisation

NORMALISATIONS: dict[str, Normalisation] = {"unit": UNIT, "padded-mnist": PADDED_MNIST, "own": "own"}


def build_data(config: DataConfig) -> DataSet:
    """The data set, cut to size and padded.

    >>> build_data(DataConfig(name="digits", pad=2, train=100)).train
    Part(100 images, uint8 1x12x12)
    """
    return pad(limit(_load(config.name, os.environ.get("BGD_DATA")), config.train, config.test), config.pad)


@lru_cache(maxsize=2)  # many runs of one process use the same data
def _load(name: str, _folder: str | None) -> DataSet:
    return bgd.data.load(name)


def build_tasks(setup: Setup, seed: int) -> TaskSet:
    """The tasks; permutations come from the tasks' own seed, or from the run's where it has none.

    >>> build_tasks(Setup(scenario="class", tasks={"cut": "split"}), seed=0).heads.outputs
    10
    """
    data, tasks = build_data(setup.data), setup.tasks
    shared = scenario(setup.scenario).shared_head
    normalise = NORMALISATIONS[setup.data.normalise]
    if tasks.cut == "split":
        return split(data, tasks.count, shared_head=shared, normalise=normalise)
    if tasks.cut == "rotate":
        return rotate(data, tasks.degrees, shared_head=shared, normalise=normalise)
    own = seed if tasks.seed is None else tasks.seed
    count = 1 if tasks.cut == "whole" else tasks.count
    return permute(data, count, shared_head=shared, seed=own, normalise=normalise)


def build_stream(config: RunConfig) -> Stream:
    """The stream that the method is shown: the configured one, or all tasks at once for a joint method (Offline).

    >>> stream = build_stream(RunConfig(method="sgd", setup={"tasks": {"count": 2}}))
    >>> len(stream), stream.stages
    (24, (12, 24))
    """
    setup, options = config.setup, config.setup.stream
    rules = scenario(setup.scenario)
    if options.kind == "drifting":
        world = rotating(
            build_data(setup.data), options.start, options.end, normalise=NORMALISATIONS[setup.data.normalise]
        )
        return Drifting(
            world,
            rules,
            iterations=options.iterations,
            moments=options.moments,
            batch_size=options.batch_size,
            seed=config.seed,
        )
    tasks = build_tasks(setup, config.seed)
    if find(config.method).joint:
        epochs = options.epochs
        if options.kind == "continuous":  # as much data as the stream would have shown
            shown, size = options.iterations * options.batch_size, sum(len(task.train) for task in tasks)
            epochs = max(1, round(shown / size))
        return Joint(tasks, rules, epochs=epochs, batch_size=options.batch_size, seed=config.seed)
    if options.kind == "continuous":
        return Continuous(
            tasks,
            rules,
            iterations=options.iterations,
            beta=options.beta,
            batch_size=options.batch_size,
            seed=config.seed,
        )
    return Discrete(tasks, rules, epochs=options.epochs, batch_size=options.batch_size, seed=config.seed)


def build_net(config: NetConfig, inputs: tuple[int, int, int], outputs: int, seed: int) -> nn.Module:
    """The network, initialised from its own generator.

    >>> build_net(NetConfig(widths=(20,)), (1, 8, 8), 10, seed=0).head
    Linear(in_features=20, out_features=10, bias=True)
    """
    return MLP(inputs, outputs, config.widths, init=config.init, seed=seed)


def build_learner(config: RunConfig, stream: Stream) -> Learner:
    """The learner, with what only the run knows filled in: its seed, and how much data there is.

    >>> config = RunConfig(method="bbb", seed=7)
    >>> build_learner(config, build_stream(config)).train_size
    7210
    """
    net = build_net(config.setup.net, stream.tasks.shape, stream.tasks.heads.outputs, config.seed)
    sizes = [len(task.train) for task in stream.tasks]
    settings = _filled(config, train_size=sizes if config.method == "vcl" else sum(sizes))
    return create(
        config.method,
        net.to(config.device),
        stream.tasks.heads,
        stream.scenario,
        loss_over=config.setup.loss_over,
        **settings,
    )


def check(config: RunConfig) -> None:
    """Refuse a configuration that could not run, before anything is loaded or trained.

    >>> check(RunConfig(row="EWC", method="ewc", setup={"scenario": "discrete task-agnostic"}))
    Traceback (most recent call last):
    bgd.runs.types.RunError: EWC, seed 0: 'ewc' needs BOUNDARIES, but the scenario ...
    """
    try:
        _check(config)
    except BGDError as error:
        raise RunError(f"{config.title}: {error}") from error
    except (ValueError, TypeError, RuntimeError) as error:  # what torch says of a setting does not name it
        raise RunError(f"{config.title}: the settings {config.settings} do not work: {error}") from error


def _check(config: RunConfig) -> None:
    setup = config.setup
    rules = scenario(setup.scenario)
    _check_stream(setup, rules)
    _check_device(config.device)
    if config.settings.get("test_samples"):
        raise RunError("leave test_samples out of the settings: test.inference and test.samples decide how runs test")
    heads = shared_heads(2, 2) if rules.shared_head else separate_heads([2, 2])
    # a network of a few weights: what can be wrong with the settings shows without data
    create(
        config.method,
        MLP(1, heads.outputs, ()),
        heads,
        rules,
        loss_over=setup.loss_over,
        **_filled(config, train_size=1),
    )


def _check_stream(setup: Setup, rules: Scenario) -> None:
    kind = setup.stream.kind
    if rules.boundaries != (kind == "discrete"):
        fitting = "discrete" if rules.boundaries else "continuous or drifting"
        raise RunError(f"scenario {rules.name!r} needs a stream of kind {fitting}, not {kind!r}")
    if kind == "drifting" and not rules.shared_head:
        raise RunError("a drifting stream needs a scenario with a shared head")
    if setup.tasks.cut == "rotate" and kind != "drifting" and not setup.tasks.degrees:
        raise RunError("tasks.degrees is empty: give an angle for each rotated task")


def _check_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = str(error).partition("\n")[0]
        raise RunError(f"device {device!r} cannot be used here ({why}): choose another, such as cpu") from None


def _filled(config: RunConfig, train_size: int | list[int]) -> dict[str, Any]:
    own = {"seed": config.seed, "train_size": train_size}
    known = settings_of(config.method)
    return {key: value for key, value in own.items() if key in known} | config.settings
