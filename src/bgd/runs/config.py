"""The configuration of a run, resolved: a run is a pure function of it."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from bgd.inference import Inference
from bgd.methods.common.outputs import Over
from bgd.nets.registry import NETS
from bgd.scenarios import scenario
from bgd.scenarios.errors import ScenarioError

NUMBERS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
"""How JSON strings write the numbers that JSON does not have."""


class Strict(BaseModel):
    """A frozen model that refuses unknown keys, since a misspelt setting must not pass in silence."""

    # JSON has no NaN: the loss of a network that has diverged is written as "NaN", and read back as a number
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


DATA_NAME = (
    "a name that `bgd data list` shows, a folder of .npz arrays, or module:function that returns a DataSet; of a "
    "prequential stream one of river's tables, a CSV or Parquet file, or module:function that returns a data frame"
)


class Named(Strict):
    """A configuration that may be given as its name alone: ``net = "mypackage.nets:build"``."""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given


class AugmentConfig(Strict):
    """Augmentation of training images; none by default."""

    crop: int = Field(default=0, ge=0, description="zero padding on each side, from which images are cropped at random")
    flip: bool = Field(default=False, description="mirror left and right with probability 1/2")


class SetConfig(Named):
    """One data set of a mix.

    >>> SetConfig(name="cifar100", classes=range(10)).classes
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    """

    name: str = Field(description=DATA_NAME)
    classes: tuple[int, ...] | None = Field(default=None, description="only these, numbered 0, 1, ... in this order")
    train: int | None = Field(default=None, ge=1, description="only the first training images; None: data.train")
    test: int | None = Field(default=None, ge=1, description="only the first test images; None: data.test")
    augment: AugmentConfig | None = Field(default=None, description="of its training images; None: stream.augment")


class DataConfig(Named):
    """The data and its preparation: one data set by name, or a mix of several, each a task (``tasks.kind="mix"``).

    >>> DataConfig(name="mnist", pad=2, normalise="padded-mnist").train is None
    True
    >>> [one.name for one in DataConfig(mix=[{"name": "mnist"}, {"name": "svhn"}], normalise="own").mix]
    ['mnist', 'svhn']
    """

    name: str = Field(default="digits", description=DATA_NAME)
    pad: int = Field(default=0, ge=0, description="zeros on each side: 2 makes MNIST 32x32")
    train: int | None = Field(default=None, ge=1, description="only the first training images")
    test: int | None = Field(default=None, ge=1, description="only the first test images")
    normalise: Literal["unit", "padded-mnist", "own"] = Field(
        default="unit", description="pixels in [0, 1]; Hsu et al.'s mean and std; or the training images' own"
    )
    target: str | None = Field(default=None, description="the column of the labels, of a table of one's own")
    mix: tuple[SetConfig, ...] = Field(default=(), description="several data sets, instead of `name`")
    shape: tuple[int, int, int] | None = Field(
        default=None,
        description="(C, H, W) of all images: smaller ones are framed in zeros, grey ones become C equal channels; "
        "None: as they are, or for a mix the smallest shape in which all fit",
    )


class TasksConfig(Strict):
    """How tasks are made from the data."""

    kind: Literal["split", "permute", "rotate", "whole", "mix"] = "permute"
    count: int = Field(default=5, ge=1, description="number of tasks (split, permute)")
    degrees: tuple[float, ...] = Field(default=(), description="angle of each task (rotate)")
    seed: int | None = Field(default=None, ge=0, description="of the permutations; None: the run's own seed")


class StreamConfig(Strict):
    """The order in which the tasks appear.

    >>> StreamConfig(augment={"crop": 4, "flip": True}).augment
    AugmentConfig(crop=4, flip=True)
    """

    kind: Literal["discrete", "continuous", "drifting", "prequential"] = "discrete"
    batch_size: int = Field(default=128, ge=1)
    epochs: int = Field(default=1, ge=1, description="of each task (discrete)")
    iterations: int = Field(default=1000, ge=1, description="of the whole stream (continuous, drifting)")
    beta: float = Field(default=4.0, gt=0, description="sharpness of the transitions (continuous)")
    start: float = Field(default=0.0, description="angle at the start, degrees (drifting)")
    end: float = Field(default=90.0, description="angle at the end, degrees (drifting)")
    moments: int = Field(
        default=5, ge=2, description="points in time at which the drift is tested, evenly spaced (drifting)"
    )
    augment: AugmentConfig = AugmentConfig()


InitName = Literal[
    "xavier",
    "xavier-zero-bias",
    "xavier-torch-bias",
    "torch",
    "torch-zero-bias",
    "torch-normal-bias",
    "he",
    "he-out",
]


class NetConfig(Named):
    """The network.

    >>> NetConfig(name="vgg16-bn", init="torch-zero-bias").name
    'vgg16-bn'
    >>> NetConfig(name="mypackage.nets:build", settings={"depth": 3}).settings
    {'depth': 3}
    >>> Setup(net="lenet").net.name
    'lenet'
    """

    name: str = Field(default="mlp", description="a key of bgd.nets.registry.NETS, an entry point, or module:function")
    widths: tuple[int, ...] = Field(default=(200, 200), description="of the hidden layers (mlp)")
    init: InitName = Field(default="xavier", description="a key of bgd.nets.INITS")
    heads: Literal["own", "joined"] = Field(
        default="own",
        description="where tasks have heads of their own, each starts as a linear layer of its own, as in the paper's "
        "authors' code; joined: all as one layer, whose Xavier weights and biases are smaller",
    )
    precision: Literal["float32", "bfloat16"] = Field(default="float32", description="of its products, not its weights")
    settings: dict[str, Any] = Field(default_factory=dict, description="arguments of a net of one's own")


class TestConfig(Strict):
    """When and how the learner is evaluated."""

    __test__ = False  # pytest would collect it by its name

    inference: Inference = Field(default="map", description="what R and the final accuracy are measured by")
    samples: int = Field(default=10, ge=1, description="networks sampled from a posterior")
    evaluations: int = Field(default=0, ge=0, description="evenly spaced over the run, beside those after each task")
    curve: int = Field(default=200, ge=1, description="points of the curve of training losses")
    train: int = Field(
        default=0, ge=0, description="training images of each task that are evaluated too, the first ones; 0: none"
    )
    stds: int = Field(
        default=0, ge=0, description="histograms evenly spaced over the run, beside those after each task"
    )
    alarm_every: int = Field(
        default=10_000, ge=100, description="examples between false alarms, on average and at least (prequential)"
    )


class Setup(Strict):
    """All of a run but the method: each part may be given partially, and overrides the one before it."""

    data: DataConfig = DataConfig()
    tasks: TasksConfig = TasksConfig()
    scenario: str = Field(default="domain", description="see `bgd scenarios`")
    stream: StreamConfig = StreamConfig()
    net: NetConfig = NetConfig()
    test: TestConfig = TestConfig()
    loss_over: Over | None = Field(
        default=None,
        description="outputs of the training loss; 'batch' is the labels trick; None: the scenario's usual",
    )
    loss: str | None = Field(
        default=None,
        description="training loss: a key of bgd.methods.common.likelihoods.LIKELIHOODS, an entry point, or "
        "module:attribute; None: cross-entropy",
    )


def unused(setup: Setup) -> set[str]:
    """Settings without an effect on a run of this kind, as paths: a description of the run can leave them out.

    >>> sorted(unused(Setup(stream={"kind": "continuous"}, net={"name": "lenet"})))[:4]
    ['data.mix', 'data.target', 'net.heads', 'net.settings']
    """
    kind, tasks = setup.stream.kind, setup.tasks.kind
    used = {
        "stream.epochs": kind == "discrete",
        "stream.iterations": kind in ("continuous", "drifting"),
        "stream.beta": kind == "continuous",
        **dict.fromkeys(("stream.start", "stream.end", "stream.moments"), kind == "drifting"),
        "tasks.kind": kind not in ("drifting", "prequential"),
        "tasks.count": kind not in ("drifting", "prequential") and tasks in ("split", "permute"),
        "tasks.degrees": kind not in ("drifting", "prequential") and tasks == "rotate",
        "tasks.seed": kind not in ("drifting", "prequential") and tasks == "permute",
        "data.mix": tasks == "mix",
        **dict.fromkeys(("data.target", "test.alarm_every"), kind == "prequential"),
        **dict.fromkeys(("data.pad", "data.test", "data.normalise", "data.shape"), kind != "prequential"),
        "data.name": tasks != "mix",
        "net.widths": setup.net.name == "mlp",
        "net.init": setup.net.name in NETS,
        "net.heads": setup.net.name in NETS and _heads_matter(setup),
        "net.settings": setup.net.name not in NETS,
    }
    return {path for path, has_effect in used.items() if not has_effect}


def _heads_matter(setup: Setup) -> bool:
    """Whether several heads start otherwise than one layer: where the task chooses one, and the rule counts outputs."""
    try:
        task_in_testing = scenario(setup.scenario).task_in_testing
    except ScenarioError:  # refused where the run is validated
        return True
    return task_in_testing and any(rule in setup.net.init for rule in ("xavier", "normal"))


class RunConfig(Strict):
    """Everything that decides the result of a run, resolved: no defaults of an experiment are left open.

    >>> config = RunConfig(method="bgd", settings={"std_init": 0.06})
    >>> config.digest == RunConfig.model_validate_json(config.model_dump_json()).digest
    True
    >>> one, other = {"lr": 1.0, "std_init": 0.1}, {"std_init": 0.1, "lr": 1.0}
    >>> RunConfig(method="bgd", settings=one).digest == RunConfig(method="bgd", settings=other).digest
    True
    """

    experiment: str = Field(default="", description="name of the experiment")
    preset: str = ""
    row: str = Field(default="", description="label of the method in tables, such as 'BGD (this paper)'")
    column: str = Field(default="", description="label of the setting in tables, such as 'domain'")
    seed: int = Field(default=0, ge=0)
    method: str = Field(description="a key of bgd.methods.METHODS, an entry point, or module:Class")
    settings: dict[str, Any] = Field(default_factory=dict, description="of the method")
    setup: Setup = Setup()
    device: str = "cpu"

    @field_validator("settings")
    @classmethod
    def _numbers(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """JSON has no infinity: it is written as a string, and read back as a number."""
        return {key: NUMBERS.get(value, value) if isinstance(value, str) else value for key, value in settings.items()}

    @property
    def digest(self) -> str:
        """A short name for exactly this configuration, independent of the order of its settings."""
        content = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:10]

    @property
    def title(self) -> str:
        """Row, column and seed, for messages."""
        return ", ".join(part for part in (self.row or self.method, self.column, f"seed {self.seed}") if part)
