"""The one gate for the configuration of a single run: what it refuses could not run; what it passes is trusted."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from bgd.errors import BGDError
from bgd.methods.registry import find_method
from bgd.nets.registry import NETS
from bgd.plugins import find
from bgd.runs.build import build_augment, build_net, build_stream, create_learner
from bgd.runs.config import RunConfig, Setup
from bgd.runs.data import is_table
from bgd.runs.errors import RunError
from bgd.runs.randomness import own_randomness
from bgd.scenarios import Scenario, scenario, separate_heads, shared_heads


def validate(config: RunConfig) -> None:
    """Refuse a configuration that could not run, before anything is loaded or trained.

    Raises:
        RunError: names the run, what is wrong, and the way out.

    >>> validate(RunConfig(row="EWC", method="ewc", setup={"scenario": "discrete task-agnostic"}))
    Traceback (most recent call last):
    bgd.runs.errors.RunError: EWC, seed 0: 'ewc' needs BOUNDARIES, but the scenario ...
    """
    try:
        rules = scenario(config.setup.scenario)
        _check_stream(config.setup, rules)
        _check_device(config.device)
        _check_method(config, rules)
        find(config.setup.net.name, NETS, "net", "bgd.nets")
    except BGDError as error:
        raise RunError(f"{config.title}: {error}") from error
    except (ValueError, TypeError, RuntimeError) as error:  # torch's own errors do not name the setting
        raise RunError(f"{config.title}: the settings {config.settings} do not work: {error}") from error


def prepare_data(configs: Iterable[RunConfig]) -> None:
    """Fetch the data of validated runs, and refuse data or a network that does not fit; once for each setup.

    Raises:
        BGDError: names what is wrong; nothing has been started.

    >>> prepare_data([RunConfig(method="sgd", setup={"net": {"name": "vgg16"}})])
    Traceback (most recent call last):
    bgd.runs.errors.RunError: net 'vgg16': images of shape (1, 8, 8) are too small for a VGG: pad them, or use ...
    """
    for config in {config.setup.model_dump_json(): config for config in configs}.values():
        tasks = build_stream(config).tasks
        with own_randomness(config.seed):  # a net of the user's own may draw from the caller's generator
            build_net(config.setup.net, tasks.shape, tasks.heads.outputs, config.seed)


def _check_stream(setup: Setup, rules: Scenario) -> None:
    kind, tasks, members = setup.stream.kind, setup.tasks, len(setup.data.mix)
    if rules.boundaries != (kind == "discrete"):
        fitting = "discrete" if rules.boundaries else "continuous, drifting or prequential"
        raise RunError(f"scenario {rules.name!r} needs a stream of kind {fitting}, not {kind!r}")
    if (kind == "prequential") != is_table(setup.data):
        raise RunError(
            f"data {setup.data.name!r} {'needs' if is_table(setup.data) else 'does not fit'} a stream of kind "
            "'prequential': a table (a name of river's, a file, or data.target with module:function) is predicted row "
            "by row, and then learnt"
        )
    if kind == "prequential" and (members or build_augment(setup.stream.augment)):
        raise RunError("a table is no mix of images: leave data.mix and stream.augment out")
    if kind == "drifting" and not rules.shared_head:
        raise RunError("a drifting stream needs a scenario with a shared head")
    if tasks.kind == "mix" and not members:
        raise RunError("tasks.kind is 'mix', but data.mix is empty: list its data sets there")
    if tasks.kind != "mix" and members:
        raise RunError(
            f"data.mix lists {members} data sets, but tasks.kind is {tasks.kind!r}: set it to 'mix', or give data.name"
        )
    if kind == "drifting" and members:
        raise RunError("a drifting stream takes one data set: give data.name, and leave data.mix empty")
    if kind != "drifting":
        if tasks.kind == "permute" and tasks.count > 1 and build_augment(setup.stream.augment):
            raise RunError("permuted pixels have no neighbours: leave out stream.augment, or choose another tasks.kind")
        if tasks.kind == "rotate" and not tasks.degrees:
            raise RunError("tasks.degrees is empty: give an angle for each rotated task")


def _check_device(device: str) -> None:
    try:
        torch.ones(1, device=device).item()  # refuses a device that holds tensors without values, such as meta, too
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0]
        raise RunError(f"device {device!r} cannot be used here ({reason}): choose another, such as cpu") from None


def _check_method(config: RunConfig, rules: Scenario) -> None:
    """Create the learner around a network of a few weights: wrong settings show without data."""
    if config.settings.get("test_samples"):
        raise RunError("leave test_samples out of the settings: test.inference and test.samples decide how runs test")
    heads = shared_heads(2, 2) if rules.shared_head else separate_heads([2, 2])
    if config.setup.stream.kind == "prequential" and find_method(config.method).joint:
        raise RunError(
            f"{config.method!r} learns from all data at once, but a prequential stream shows it once, in order"
        )
    with own_randomness(config.seed):  # layers draw from the caller's generator
        create_learner(config, nn.Sequential(nn.Flatten(), nn.Linear(1, heads.outputs)), heads, rules, [1])
