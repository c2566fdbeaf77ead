"""Drifting data: at each iteration the batch is of the data as it is then."""

import numpy as np
import pytest
import torch
from small_data import make_data
from small_streams import CONTINUOUS

from bgd.scenarios import DataSet, Drifting, Part, ScenarioError, blending, rotate, rotating


def test_rotation_drifts_from_start_to_end(data):
    stream = Drifting(rotating(data, 0, 180), CONTINUOUS, iterations=41, moments=3, batch_size=8)
    for i, turns in ((0, 0), (20, 1), (40, 2)):
        _, where = stream.sample(i)
        expected = torch.rot90(data.train.images[where], turns, (2, 3)) / 255
        torch.testing.assert_close(stream[i].x, expected)
    assert [stream.progress(i) for i in (0, 40)] == [0, 1]
    last = next(stream.test_batches(2))
    torch.testing.assert_close(last.x, torch.rot90(data.test.images, 2, (2, 3)) / 255)


def test_blending_drifts_from_one_data_set_to_the_other_class_by_class():
    data, other = make_data(), make_data(seed=7, name="other", n=57)
    stream = Drifting(blending(data, other, seed=1), CONTINUOUS, iterations=11, batch_size=32)
    assert torch.equal(stream[0].x, next(iter(stream)).x)
    _, where = stream.sample(0)
    torch.testing.assert_close(stream[0].x, data.train.images[where] / 255)
    known = {image.numpy().tobytes(): int(y) for image, y in zip(*_parts(other), strict=True)}
    end = stream[10]
    for image, label in zip((end.x * 255).round().to(torch.uint8), end.y, strict=True):
        assert known[image.numpy().tobytes()] == int(label)


def _parts(data):
    return data.train.images, data.train.labels


def test_moments_of_a_drift_as_shares(data):
    stream = Drifting(rotating(data), CONTINUOUS, iterations=9, moments=3)
    np.testing.assert_allclose(stream.expected_proportions(range(9)).sum(axis=1), 1)
    assert stream.expected_proportions([0, 4, 8]).tolist() == np.eye(3).tolist()


def test_a_moment_is_measured_half_way_to_the_next(data):
    stream = Drifting(rotating(data), CONTINUOUS, iterations=400, moments=5)
    assert stream.stages == (50, 150, 250, 350, 400)
    for moment, stage in enumerate(stream.stages):
        assert stream.sample(stage - 1)[0] == moment
    assert Drifting(rotating(data), CONTINUOUS, iterations=5, moments=5).stages == (1, 2, 3, 4, 5)


def test_plain_features_are_not_rotated():
    part = Part(torch.zeros(2, 1, 1, 20), torch.arange(2))
    features = DataSet("features", part, part, ("a", "b"))
    with pytest.raises(ScenarioError, match=r"shape \(1, 1, 20\) cannot be rotated, since it is no image: permute it"):
        rotating(features, 0, 90).moments(2)
    with pytest.raises(ScenarioError, match="no image"):
        rotate(features, [0, 30], shared_head=True)


def test_data_that_cannot_be_blended():
    data = make_data()
    with pytest.raises(ScenarioError, match="one shape"):
        blending(data, make_data(shape=(1, 5, 5)))
    with pytest.raises(ScenarioError, match="as many classes"):
        blending(data, make_data(classes=5))
