"""Augmentation: right in every pixel, and a pure function of (seed, iteration)."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from small_data import make_data

from bgd.scenarios import (
    Augment,
    Continuous,
    Discrete,
    Drifting,
    Joint,
    ScenarioError,
    mix,
    permute,
    rotating,
    scenario,
    split,
)
from bgd.scenarios.philox import Purpose, random_words

AGNOSTIC = scenario("continuous task-agnostic")


def naive(pixels, shape, crop, flip, seed, iteration):
    """The same, image by image and pixel by pixel."""
    c, h, w = shape
    n = len(pixels)
    flips, tops, lefts = random_words(seed, Purpose.AUGMENT, (iteration, 0), 3 * n).reshape(3, n).tolist()
    out = np.zeros_like(pixels).reshape(n, c, h, w)
    for i, image in enumerate(pixels.reshape(n, c, h, w)):
        mirrored = flip and flips[i] >= 2**63
        dy, dx = ((word >> 32) * (2 * crop + 1) >> 32 for word in (tops[i], lefts[i]))
        for y in range(h):
            for x in range(w):
                row, column = y + dy - crop, x + dx - crop
                if 0 <= row < h and 0 <= column < w:
                    out[i, :, y, x] = image[:, row, w - 1 - column if mirrored else column]
    return out.reshape(n, -1)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@given(
    n=st.integers(1, 5),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 6)),
    crop=st.integers(0, 4),
    flip=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
    iteration=st.integers(0, 10**9),
)
def test_equals_a_naive_loop(dtype, n, shape, crop, flip, seed, iteration):
    pixels = np.random.default_rng(n).integers(1, 256, (n, int(np.prod(shape)))).astype(dtype)
    before = pixels.copy()
    out = Augment(crop, flip)(pixels, shape, seed, iteration)
    np.testing.assert_array_equal(out, naive(pixels, shape, crop, flip, seed, iteration))
    assert out.dtype == dtype
    assert not np.shares_memory(out, pixels)
    np.testing.assert_array_equal(pixels, before)


def test_flips_are_even_and_positions_uniform_and_independent():
    n, crop, iterations = 500, 4, 40
    ramp = np.arange(1, 18 * 18 + 1, dtype=np.float32).reshape(1, -1).repeat(n, 0)
    seen = []
    for i in range(iterations):
        out = Augment(crop, flip=True)(ramp, (1, 18, 18), 3, i).reshape(n, 18, 18)
        middle, right = out[:, 9, 8], out[:, 9, 9]
        mirrored = right < middle
        pixel = middle.astype(int) - 1
        row, column = pixel // 18 - 9 + crop, np.where(mirrored, 17 - pixel % 18, pixel % 18) - 8 + crop
        seen.append((mirrored.astype(int) * 9 + row) * 9 + column)
    counts = np.bincount(np.concatenate(seen), minlength=2 * 81)
    assert counts.shape == (2 * 81,)
    assert stats.chisquare(counts).pvalue > 0.01


def make_streams(data, **options):
    """One of each kind."""
    options = {"batch_size": 7, "seed": 5, **options}
    tasks = split(data, 5, shared_head=True, normalise="own")
    return {
        "discrete": Discrete(tasks, scenario("domain"), epochs=2, **options),
        "joint": Joint(tasks, scenario("domain"), epochs=2, **options),
        "continuous": Continuous(tasks, AGNOSTIC, iterations=30, **options),
        "drifting": Drifting(rotating(data, normalise="own"), AGNOSTIC, iterations=30, **options),
    }


@pytest.fixture
def rgb():
    return make_data(shape=(3, 6, 6))


@pytest.mark.parametrize("kind", ["discrete", "joint", "continuous", "drifting"])
def test_every_stream_is_pure_and_can_be_resumed_anywhere(kind, rgb):
    one = make_streams(rgb, augment=Augment(2))[kind]
    forwards = [one.batch(i) for i in range(len(one))]
    for i in reversed(range(len(one))):
        fresh = make_streams(rgb, augment=Augment(2))[kind].batch(i)
        assert torch.equal(fresh.x, forwards[i].x)
        assert torch.equal(fresh.y, forwards[i].y)
        assert torch.equal(one.batch(i).x, forwards[i].x)
    plain = make_streams(rgb)[kind]
    assert all(torch.equal(plain.batch(i).y, batch.y) for i, batch in enumerate(forwards)), "the same samples"
    assert not any(torch.equal(plain.batch(i).x, batch.x) for i, batch in enumerate(forwards))
    other = make_streams(rgb, augment=Augment(2), seed=6)[kind]
    assert not torch.equal(other.batch(0).x, forwards[0].x)


@pytest.mark.parametrize("kind", ["discrete", "joint", "continuous", "drifting"])
def test_test_batches_and_replayed_batches_are_not_augmented(kind, rgb):
    plain, augmented = make_streams(rgb)[kind], make_streams(rgb, augment=Augment(2))[kind]
    for task in range(len(plain.tasks)):
        for batches in ("test_batches", "train_batches"):
            for a, b in zip(getattr(plain, batches)(task), getattr(augmented, batches)(task), strict=True):
                assert torch.equal(a.x, b.x)


@pytest.mark.parametrize("kind", ["discrete", "joint", "continuous"])
def test_each_task_is_augmented_in_its_own_way(kind, rgb):
    """In the paper's vision mix CIFAR10 alone is cropped and mirrored."""
    few = [None, Augment(2), None, Augment(0), Augment(2)]
    whole = (None, Augment(0), Augment(2))
    streams = [make_streams(rgb, augment=augment)[kind] for augment in (few, *whole)]
    seen = set()
    for i in range(len(streams[0])):
        own, *alike = (stream.batch(i).x for stream in streams)
        expected = dict(zip(whole, alike, strict=True))
        tasks = np.broadcast_to(streams[0].sample(i).task, len(own))
        for k, task in enumerate(tasks):
            assert torch.equal(own[k], expected[few[task]][k])
        seen |= set(tasks.tolist())
    assert seen == set(range(5))
    with pytest.raises(ScenarioError, match="augment lists 3 tasks of 5: give one for each"):
        make_streams(rgb, augment=[None] * 3)


def test_an_image_differs_from_epoch_to_epoch():
    one_image = make_data(n=10, shape=(1, 6, 6))
    stream = Discrete(
        permute(one_image, 1, shared_head=True), scenario("domain"), epochs=8, batch_size=10, augment=Augment(2)
    )
    first_class = [batch.x[batch.y == 0].flatten() for batch in stream]
    assert len({tuple(x.tolist()) for x in first_class}) >= 7


def test_the_frame_is_black_before_normalisation(rgb):
    """Each task's own black: 0 becomes -mean / std."""
    tasks = mix([rgb, rgb], shared_head=True, normalise="own")
    stream = Joint(tasks, scenario("domain"), batch_size=64, augment=Augment(crop=5, flip=False))
    norm = tasks[0].train.normalise
    black = torch.tensor([-m / s for m, s in zip(norm.mean, norm.std, strict=True)])
    corners = stream.batch(0).x[:, :, 0, 0]
    framed = (corners - black).abs().amax(1) < 1e-5
    assert 0.5 < framed.float().mean() < 0.9  # 1 - (6/11)^2 = 0.70 of all crops begin in the frame
    assert stream.batch(0).x.min() >= black.min() - 1e-5


def test_off_by_default_and_invalid_values_are_rejected(rgb):
    assert make_streams(rgb)["discrete"].augment is None
    with pytest.raises(ScenarioError, match="crop=-1 is negative: give 0 or more"):
        Augment(-1)
    nothing = make_streams(rgb, augment=Augment(0, flip=False))["discrete"]
    assert torch.equal(nothing.batch(3).x, make_streams(rgb)["discrete"].batch(3).x)
