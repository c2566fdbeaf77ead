"""Configurations: names, digests, and files."""

import math

import pytest

from bgd.runs.config import RunConfig
from bgd.runs.errors import RunError
from bgd.runs.validation import validate


def test_an_unknown_net_is_rejected():
    """When a run is planned; a stored configuration can be read where the package of its net is not installed."""
    with pytest.raises(RunError, match="no net 'vgg-16': did you mean 'vgg16'"):
        validate(RunConfig(method="sgd", setup={"net": "vgg-16"}))
    with pytest.raises(RunError, match="choose one of mlp, lenet, lenet-relu, zenke, vgg16, vgg16-bn, vgg11, vgg11-bn"):
        validate(RunConfig(method="sgd", setup={"net": "transformer"}))


def test_every_setting_changes_the_digest():
    changes = (
        {"data": {"shape": [1, 32, 32]}},
        {"stream": {"augment": {"flip": True}}},
        {"net": {"name": "lenet"}},
        {"loss": "gaussian"},
    )
    digests = {RunConfig(method="sgd", setup=setup).digest for setup in changes}
    assert len(digests | {RunConfig(method="sgd").digest}) == 5


def test_infinite_settings_survive_their_file():
    config = RunConfig(method="kfac", settings={"kl_clip": math.inf})
    read = RunConfig.model_validate_json(config.model_dump_json())
    assert read == config
    assert read.digest == config.digest
