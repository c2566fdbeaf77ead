"""Tasks built from data sets: split, permuted, rotated, mixed."""

import pytest
import torch
from small_data import make_data

from bgd.data import DataError, pad
from bgd.scenarios import (
    DataSet,
    Heads,
    Part,
    ScenarioError,
    mix,
    permute,
    rotate,
    separate_heads,
    split,
)
from bgd.scenarios.tasks import in_batches


def concatenate_batches(samples):
    batches = list(in_batches(samples, 7))
    return torch.cat([b.x for b in batches]), torch.cat([b.y for b in batches])


def test_split_by_hand(data):
    tasks = split(data, [(3, 1), (0, 9)], shared_head=False)
    assert tasks.heads == Heads(4, ((0, 1), (2, 3)))
    x, y = concatenate_batches(tasks[1].train)
    rows = [i for i, label in enumerate(data.train.labels.tolist()) if label in (0, 9)]
    assert y.tolist() == [{0: 2, 9: 3}[int(data.train.labels[i])] for i in rows]
    torch.testing.assert_close(x, data.train.images[rows] / 255)
    assert tasks.names == ("c3, c1", "c0, c9")


def test_split_mnist_layouts(data):
    """5 x 2 outputs for task and class learning, 1 x 2 for domain learning."""
    assert split(data, 5, shared_head=False).heads == separate_heads([2] * 5)
    assert split(data, 5, shared_head=True).heads == Heads(2, ((0, 1),) * 5)
    separate = split(data, 5, shared_head=False)
    for t in range(5):
        assert separate[t].test.labels.unique().tolist() == [2 * t, 2 * t + 1]


def test_split_of_unequal_groups(data):
    heads = split(data, [(0,), (1, 2, 3)], shared_head=True).heads
    assert heads.outputs == 3


def test_permute(data):
    tasks = permute(data, 3, shared_head=True, seed=5)
    plain, _ = concatenate_batches(tasks[0].train)
    torch.testing.assert_close(plain, data.train.images / 255)
    one, y = concatenate_batches(tasks[1].train)
    assert torch.equal(y, data.train.labels)
    assert not torch.equal(one, plain)
    assert torch.equal(one.flatten(1).sort(1).values, plain.flatten(1).sort(1).values)
    order = tasks[1].train.transform.order
    torch.testing.assert_close(one.flatten(1), plain.flatten(1)[:, order])


def test_train_and_test_are_permuted_alike(data):
    task = permute(data, 2, shared_head=True)[1]
    assert task.train.transform is task.test.transform


def test_permutations_depend_on_their_seed_and_task_only(data):
    few, many = (permute(data, n, shared_head=True, seed=5) for n in (3, 6))
    for t in (1, 2):
        assert (few[t].train.transform.order == many[t].train.transform.order).all()
    assert (few[1].train.transform.order != few[2].train.transform.order).any()
    other = permute(data, 3, shared_head=True, seed=6)
    assert (few[1].train.transform.order != other[1].train.transform.order).any()


def test_padding_takes_part_in_the_permutation(data):
    x, _ = concatenate_batches(permute(pad(data, 2), 2, shared_head=True)[1].train)
    assert x[:, :, :2].any()


def test_permuted_heads(data):
    tasks = permute(data, 3, shared_head=False)
    assert tasks.heads == separate_heads([10] * 3)
    assert torch.equal(tasks[2].test.labels, data.test.labels + 20)


def test_images_are_held_once(data):
    tasks = permute(pad(data), 50, shared_head=True)
    assert len({task.train.images.data_ptr() for task in tasks}) == 1
    halves = split(data, 5, shared_head=True)
    assert {task.train.images.data_ptr() for task in halves} == {data.train.images.data_ptr()}


def test_rotate(data):
    tasks = rotate(data, [0, 90], shared_head=True)
    x, _ = concatenate_batches(tasks[1].test)
    torch.testing.assert_close(x, torch.rot90(data.test.images, 1, (2, 3)) / 255)
    assert tasks[0].train.transform is None


def test_mix_brings_data_to_one_shape_with_its_own_statistics():
    grey = make_data(shape=(1, 4, 4), classes=10, name="grey")
    rgb = make_data(shape=(3, 6, 6), classes=3, name="rgb", seed=9)
    tasks = mix([grey, rgb], shared_head=False)
    assert tasks.shape == (3, 6, 6)
    assert tasks.heads == separate_heads([10, 3])
    for task in tasks:
        x, _ = concatenate_batches(task.train)
        torch.testing.assert_close(x.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
        torch.testing.assert_close(x.std((0, 2, 3), correction=0), torch.ones(3))
    assert mix([grey, rgb], shared_head=True).heads.outputs == 10


def test_float_images_pass_through():
    data = make_data(dtype=torch.float32)
    x, _ = concatenate_batches(permute(data, 2, shared_head=True)[0].train)
    assert torch.equal(x, data.train.images)
    before = data.train.images.clone()
    concatenate_batches(split(data, 5, shared_head=True, normalise="own")[0].train)
    assert torch.equal(data.train.images, before)


def no_class_three(data):
    keep = data.train.labels != 3
    return DataSet("gap", Part(data.train.images[keep], data.train.labels[keep]), data.test, data.classes)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda d: split(d, [(0, 1), (1, 2)], shared_head=False), "class 1 is in tasks 0 and 1"),
        (lambda d: split(d, [], shared_head=True), "no groups"),
        (lambda d: split(d, 3, shared_head=True), "3 equal groups"),
        (lambda d: split(d, 0, shared_head=True), "0 equal groups"),
        (lambda d: permute(d, 0, shared_head=True), "0 tasks"),
        (lambda d: permute(d, 2, shared_head=True, seed=-1), "seed=-1"),
        (lambda d: permute(d, 2, shared_head=True, normalise="mine"), "normalise='mine'"),
        (lambda d: rotate(d, [], shared_head=True), "0 tasks"),
        (lambda d: rotate(d, [float("nan")], shared_head=True), "nan degrees"),
        (lambda d: mix([], shared_head=True), "0 tasks"),
    ],
)
def test_invalid_arguments_are_rejected(data, build, message):
    with pytest.raises(ScenarioError, match=message):
        build(data)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda d: split(d, [(0, 1), (2, 10)], shared_head=True), r"classes \(2, 10\)"),
        (lambda d: split(d, [(0, 0)], shared_head=True), r"classes \(0, 0\)"),
        (lambda d: split(d, [()], shared_head=True), r"classes \(\)"),
        (lambda d: split(no_class_three(d), 5, shared_head=True), "class 3 .*gap has no train sample"),
        (lambda d: permute(no_class_three(d), 2, shared_head=True), "class 3 .*gap has no train sample"),
        (lambda d: mix([d], shared_head=True, shape=(1, 3, 4)), r"do not fit into \(1, 3, 4\)"),
    ],
)
def test_data_that_does_not_fit_is_rejected(data, build, message):
    with pytest.raises(DataError, match=message):
        build(data)


def test_nan_pixels_are_refused():
    images = torch.zeros(2, 1, 2, 2)
    images[1, 0, 0, 0] = float("nan")
    with pytest.raises(ValueError, match="NaN"):
        permute(
            DataSet("nan", Part(images, torch.arange(2)), Part(images, torch.arange(2)), ("a", "b")),
            2,
            shared_head=True,
        )


def test_images_of_several_types_are_refused():
    with pytest.raises(ScenarioError, match=r"task 1 .*torch.float32 images, task 0 torch.uint8"):
        mix([make_data(), make_data(dtype=torch.float32)], shared_head=True)
