"""From a configuration to its parts: data, tasks, stream, network, learner. Every part is a pure function of it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from torch import nn

import bgd.data
from bgd.data import limit, pad, subset, to_shape
from bgd.data.types import DataError, DataSet
from bgd.errors import BGDError
from bgd.methods import create, find_method, settings_of
from bgd.methods.common.types import Learner
from bgd.nets import MLP, InBfloat16, registry
from bgd.runs.config import AugmentConfig, DataConfig, NetConfig, RunConfig, SetConfig, Setup
from bgd.runs.errors import RunError
from bgd.scenarios import (
    PADDED_MNIST,
    UNIT,
    Augment,
    Continuous,
    Discrete,
    Drifting,
    Joint,
    Scenario,
    Stream,
    TaskSet,
    mix,
    permute,
    rotate,
    rotating,
    scenario,
    separate_heads,
    shared_heads,
    split,
)
from bgd.scenarios.tasks.normalise import Normalisation

NORMALISATIONS: dict[str, Normalisation] = {"unit": UNIT, "padded-mnist": PADDED_MNIST, "own": "own"}


def build_data(config: DataConfig) -> DataSet:
    """The data set, cut to size, padded, and in the shape that is asked for.

    >>> build_data(DataConfig(name="digits", pad=2, train=100)).train
    Part(100 images, uint8 1x12x12)
    >>> build_data(DataConfig(name="digits", shape=(3, 32, 32), train=100)).train
    Part(100 images, uint8 3x32x32)
    """
    data = pad(limit(load(config.name), config.train, config.test), config.pad)
    return data if config.shape is None else to_shape(data, config.shape)


def build_mix(config: DataConfig) -> list[DataSet]:
    """The data sets of a mix, each with its own classes and size; their shapes are still their own.

    >>> halves = DataConfig(mix=[{"name": "digits", "classes": range(5)}, {"name": "digits", "train": 80}], train=90)
    >>> for data in build_mix(halves):
    ...     print(data.name, len(data.classes), data.train)
    digits 0-4 5 Part(90 images, uint8 1x8x8)
    digits 10 Part(80 images, uint8 1x8x8)
    """
    return [_one_of(one, config) for one in config.mix]


def _one_of(one: SetConfig, config: DataConfig) -> DataSet:
    data = load(one.name)
    if one.classes is not None:
        first, last = one.classes[0], one.classes[-1]
        run = one.classes == tuple(range(first, last + 1))
        which = f"{first}-{last}" if run else ", ".join(map(str, one.classes))
        data = replace(subset(data, one.classes), name=f"{data.name} {which}")
    return pad(limit(data, one.train or config.train, one.test or config.test), config.pad)


def names_of(config: DataConfig) -> list[str]:
    """The data sets that a configuration uses, each once.

    >>> names_of(DataConfig()), names_of(DataConfig(mix=[{"name": "cifar10"}, {"name": "svhn"}, {"name": "svhn"}]))
    (['digits'], ['cifar10', 'svhn'])
    """
    return list(dict.fromkeys(one.name for one in config.mix)) or [config.name]


def note_on(config: DataConfig) -> str:
    """What a reader of results must know of the data, such as a part that is not the published one.

    >>> note_on(DataConfig(name="digits"))
    ''
    """
    notes = {name: note for name in names_of(config) if (note := load(name).note)}
    return "; ".join(f"{name}: {note}" for name, note in notes.items()) if config.mix else "".join(notes.values())


def own_data(config: DataConfig) -> str:
    """A hash of the arrays of which a name or a path says nothing, the user's own or others under a published name.

    Empty where all data is published.

    >>> own_data(DataConfig(name="digits"))
    ''
    """
    folder = os.environ.get("BGD_DATA")
    return "".join(_hash(name, folder) for name in names_of(config) if not _is_published(name))


def _is_published(name: str) -> bool:
    if name not in bgd.data.published_names():
        return False
    try:
        return not load(name).note
    except DataError:  # what is not here need not be: a finished run can be read without
        return True


@lru_cache(maxsize=8)  # every run of a comparison asks
def _hash(name: str, folder: str | None) -> str:
    total = hashlib.sha256()
    data = _load(name, folder)
    for tensor in (data.train.images, data.train.labels, data.test.images, data.test.labels):
        total.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        total.update(tensor.contiguous().numpy().data)
    return total.hexdigest()[:32]


def load(name: str) -> DataSet:
    """A data set as it is, from memory where this process has used it before.

    >>> load("digits") is load("digits")
    True
    """
    return _load(name, os.environ.get("BGD_DATA"))


@lru_cache(maxsize=8)  # many runs of one process use the same data; a mix has several sets
def _load(name: str, _folder: str | None) -> DataSet:
    return bgd.data.load(name)


def build_tasks(setup: Setup, seed: int) -> TaskSet:
    """The tasks; permutations come from the tasks' own seed, or from the run's where it has none.

    >>> build_tasks(Setup(scenario="class", tasks={"cut": "split"}), seed=0).heads.outputs
    10
    """
    tasks, shared = setup.tasks, scenario(setup.scenario).shared_head
    normalise = NORMALISATIONS[setup.data.normalise]
    if tasks.cut == "mix":
        return mix(build_mix(setup.data), shared_head=shared, shape=setup.data.shape, normalise=normalise)
    data = build_data(setup.data)
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
    augment = build_augment(options.augment)
    joint = find_method(config.method).joint
    if options.kind == "drifting":
        world = rotating(
            build_data(setup.data), options.start, options.end, normalise=NORMALISATIONS[setup.data.normalise]
        )
        if not joint:
            return Drifting(
                world,
                rules,
                iterations=options.iterations,
                moments=options.moments,
                batch_size=options.batch_size,
                seed=config.seed,
                augment=augment,
            )
        tasks = world.moments(options.moments)
    else:
        tasks = build_tasks(setup, config.seed)
    if joint:
        epochs = options.epochs
        if options.kind != "discrete":  # as much data as the stream would have shown
            shown, size = options.iterations * options.batch_size, sum(len(task.train) for task in tasks)
            epochs = max(1, round(shown / size))
        return Joint(tasks, rules, epochs=epochs, batch_size=options.batch_size, seed=config.seed, augment=augment)
    if options.kind == "continuous":
        return Continuous(
            tasks,
            rules,
            iterations=options.iterations,
            beta=options.beta,
            batch_size=options.batch_size,
            seed=config.seed,
            augment=augment,
        )
    return Discrete(
        tasks, rules, epochs=options.epochs, batch_size=options.batch_size, seed=config.seed, augment=augment
    )


def build_augment(config: AugmentConfig) -> Augment | None:
    """What happens to training images; None for nothing.

    >>> build_augment(AugmentConfig(crop=4)), build_augment(AugmentConfig())
    (Augment(crop=4, flip=False), None)
    """
    return Augment(config.crop, config.flip) if config.crop or config.flip else None


def build_net(config: NetConfig, inputs: tuple[int, int, int], outputs: int, seed: int) -> nn.Module:
    """The network, initialised from its own generator.

    >>> build_net(NetConfig(widths=(20,)), (1, 8, 8), 10, seed=0).head
    Linear(in_features=20, out_features=10, bias=True)
    >>> build_net(NetConfig(name="vgg16"), (1, 8, 8), 10, seed=0)
    Traceback (most recent call last):
    bgd.runs.errors.RunError: net 'vgg16': images of shape (1, 8, 8) are too small for a VGG: pad them, or use ...
    """
    try:
        net = registry.build_net(config.name, inputs, outputs, init=config.init, seed=seed, widths=config.widths)
    except ValueError as error:
        raise RunError(str(error)) from error
    return InBfloat16(net) if config.precision == "bfloat16" else net


def build_learner(config: RunConfig, stream: Stream) -> Learner:
    """The learner, with what only the run knows filled in: its seed, and how much data there is.

    >>> config = RunConfig(method="bbb", seed=7)
    >>> build_learner(config, build_stream(config)).train_size
    7210
    """
    net = build_net(config.setup.net, stream.tasks.shape, stream.tasks.heads.outputs, config.seed)
    _check_batches(net, stream)
    # the tasks of a drift are moments at which it is tested, all with the same images
    drifts = config.setup.stream.kind == "drifting"
    sizes = [len(task.train) for task in ([stream.tasks[0]] if drifts else stream.tasks)]
    settings = _filled(config, train_size=sizes if find_method(config.method).train_size_per_task else sum(sizes))
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
    bgd.runs.errors.RunError: EWC, seed 0: 'ewc' needs BOUNDARIES, but the scenario ...
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
    cut, sets = setup.tasks.cut, len(setup.data.mix)
    if cut == "mix" and not sets:
        raise RunError("tasks.cut is 'mix', but data.mix is empty: list its data sets there")
    if cut != "mix" and sets:
        raise RunError(f"data.mix lists {sets} data sets, but tasks.cut is {cut!r}: set it to 'mix', or give data.name")
    if kind == "drifting" and sets:
        raise RunError("a drifting stream takes one data set: give data.name, and leave data.mix empty")
    if cut == "permute" and kind != "drifting" and setup.tasks.count > 1 and build_augment(setup.stream.augment):
        raise RunError("permuted pixels have no neighbours: leave out stream.augment, or cut the tasks otherwise")
    if cut == "rotate" and kind != "drifting" and not setup.tasks.degrees:
        raise RunError("tasks.degrees is empty: give an angle for each rotated task")


def _check_batches(net: nn.Module, stream: Stream) -> None:
    """BatchNorm has no variance of a single image: say so now, not at the end of the first epoch."""
    if not any(isinstance(layer, nn.BatchNorm2d) for layer in net.modules()) or not isinstance(
        stream, Discrete | Joint
    ):
        return
    sizes = [len(task.train) for task in stream.tasks]
    for size in sizes if isinstance(stream, Discrete) else [sum(sizes)]:
        if size % stream.batch_size == 1 or stream.batch_size == 1:
            raise RunError(
                f"BatchNorm cannot learn from a batch of one image, but {size:,} images in batches of "
                f"{stream.batch_size} leave one: choose another stream.batch_size, or set data.train"
            )


def _check_device(device: str) -> None:
    try:
        torch.ones(1, device=device).item()  # a device that holds tensors but no numbers would not do
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = str(error).partition("\n")[0].partition(". ")[0]
        raise RunError(f"device {device!r} cannot be used here ({why}): choose another, such as cpu") from None


def _filled(config: RunConfig, train_size: int | list[int]) -> dict[str, Any]:
    own = {"seed": config.seed, "train_size": train_size}
    known = settings_of(config.method)
    return {key: value for key, value in own.items() if key in known} | config.settings
