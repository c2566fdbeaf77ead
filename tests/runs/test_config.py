"""Configurations: names, digests, and files."""

import math

import pytest
from pydantic import ValidationError

from bgd.runs.config import NetConfig, RunConfig


def test_an_unknown_net_is_rejected():
    with pytest.raises(ValidationError, match="no net 'vgg-16': did you mean 'vgg16'"):
        NetConfig(name="vgg-16")
    with pytest.raises(ValidationError, match="choose one of mlp, lenet, zenke, vgg16, vgg16-bn, vgg11, vgg11-bn"):
        NetConfig(name="transformer")


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
