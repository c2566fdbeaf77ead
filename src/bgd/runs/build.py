"""From a configuration to its parts: tasks, stream, network, learner. Every part is a pure function of it."""

from __future__ import annotations

from typing import Any

from torch import nn

from bgd.errors import BGDError
from bgd.methods.common.likelihoods import find_likelihood
from bgd.methods.common.types import Learner
from bgd.methods.registry import create, find_method, settings_of
from bgd.nets import registry as nets
from bgd.nets.precision import InBfloat16
from bgd.runs.config import AugmentConfig, NetConfig, RunConfig, Setup
from bgd.runs.data import build_data, build_mix, build_table
from bgd.runs.errors import RunError
from bgd.scenarios import (
    PADDED_MNIST,
    UNIT,
    Augment,
    Continuous,
    Discrete,
    Drifting,
    Heads,
    Joint,
    Prequential,
    Scenario,
    Stream,
    TaskSet,
    mix,
    permute,
    rotate,
    rotating,
    scenario,
    split,
)
from bgd.scenarios.tasks.normalise import Normalisation

NORMALISATIONS: dict[str, Normalisation] = {"unit": UNIT, "padded-mnist": PADDED_MNIST, "own": "own"}


def build_tasks(setup: Setup, seed: int) -> TaskSet:
    """The tasks; permutations come from the tasks' own seed, or from the run's where it has none.

    >>> build_tasks(Setup(scenario="class", tasks={"kind": "split"}), seed=0).heads.outputs
    10
    """
    tasks, shared = setup.tasks, scenario(setup.scenario).shared_head
    normalise = NORMALISATIONS[setup.data.normalise]
    if tasks.kind == "mix":
        return mix(build_mix(setup.data), shared_head=shared, shape=setup.data.shape, normalise=normalise)
    data = build_data(setup.data)
    if tasks.kind == "split":
        return split(data, tasks.count, shared_head=shared, normalise=normalise)
    if tasks.kind == "rotate":
        return rotate(data, tasks.degrees, shared_head=shared, normalise=normalise)
    task_seed = seed if tasks.seed is None else tasks.seed
    count = 1 if tasks.kind == "whole" else tasks.count
    return permute(data, count, shared_head=shared, seed=task_seed, normalise=normalise)


def build_stream(config: RunConfig) -> Stream:
    """The stream that the method is trained on: the configured one, or all tasks at once for a joint method (Offline).

    >>> stream = build_stream(RunConfig(method="sgd", setup={"tasks": {"count": 2}}))
    >>> len(stream), stream.stages
    (24, (12, 24))
    """
    setup, options = config.setup, config.setup.stream
    rules = scenario(setup.scenario)
    common: dict[str, Any] = {
        "batch_size": options.batch_size,
        "seed": config.seed,
        "augment": build_augment(options.augment),
    }
    joint = find_method(config.method).joint
    if options.kind == "prequential":
        table = build_table(setup.data, config.seed)
        return Prequential(table, rules, batch_size=options.batch_size, seed=config.seed)
    if options.kind == "drifting":
        normalise = NORMALISATIONS[setup.data.normalise]
        world = rotating(build_data(setup.data), options.start, options.end, normalise=normalise)
        if not joint:
            return Drifting(world, rules, iterations=options.iterations, moments=options.moments, **common)
        tasks = world.moments(options.moments)
    else:
        tasks = build_tasks(setup, config.seed)
    if joint:
        epochs = options.epochs
        if options.kind != "discrete":  # as much data as the stream would have shown
            shown, size = options.iterations * options.batch_size, sum(len(task.train) for task in tasks)
            epochs = max(1, round(shown / size))
        return Joint(tasks, rules, epochs=epochs, **common)
    if options.kind == "continuous":
        return Continuous(tasks, rules, iterations=options.iterations, beta=options.beta, **common)
    return Discrete(tasks, rules, epochs=options.epochs, **common)


def build_augment(config: AugmentConfig) -> Augment | None:
    """The augmentation of training images; None for none.

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
        net = nets.build_net(
            config.name, inputs, outputs, init=config.init, seed=seed, widths=config.widths, settings=config.settings
        )
    except (ValueError, TypeError) as error:
        raise RunError(str(error) if isinstance(error, BGDError) else f"net {config.name!r}: {error}") from error
    return InBfloat16(net) if config.precision == "bfloat16" else net


def build_learner(config: RunConfig, stream: Stream) -> Learner:
    """The learner, with the settings that only the run can fill in: its seed, and the number of training samples.

    >>> config = RunConfig(method="bbb", seed=7)
    >>> build_learner(config, build_stream(config)).train_size
    7210
    """
    net = build_net(config.setup.net, stream.tasks.shape, stream.tasks.heads.outputs, config.seed)
    _check_batch_norm(net, stream)
    # the tasks of a drift are points in time at which it is tested, all with the same images
    drifts = config.setup.stream.kind == "drifting"
    sizes = [len(task.train) for task in ([stream.tasks[0]] if drifts else stream.tasks)]
    return create_learner(config, net.to(config.device), stream.tasks.heads, stream.scenario, sizes)


def create_learner(config: RunConfig, net: nn.Module, heads: Heads, rules: Scenario, train_sizes: list[int]) -> Learner:
    """The configured method around a network.

    Args:
        config: of the run.
        net: on the device of the run.
        heads: the outputs of each task.
        rules: what the scenario reveals.
        train_sizes: training samples of each task.

    >>> from bgd.scenarios import shared_heads
    >>> create_learner(RunConfig(method="sgd"), nn.Linear(1, 2), shared_heads(1, 2), scenario("domain"), [9]).joint
    False
    """
    per_task = find_method(config.method).train_size_per_task
    filled = {"seed": config.seed, "train_size": train_sizes if per_task else sum(train_sizes)}
    known = settings_of(config.method)
    loss = config.setup.loss
    return create(
        config.method,
        net,
        heads,
        rules,
        loss_over=config.setup.loss_over,
        likelihood=None if loss is None else find_likelihood(loss),
        **{key: value for key, value in filled.items() if key in known} | config.settings,
    )


def _check_batch_norm(net: nn.Module, stream: Stream) -> None:
    """Refuse batches of a single image before the first epoch rather than at its end: BatchNorm needs a variance."""
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
