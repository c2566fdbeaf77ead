import numpy as np
import pytest
import torch

from bgd.scenarios import (
    DataSet,
    Heads,
    Part,
    ScenarioError,
    Task,
    TaskSet,
    limit,
    mix,
    pad,
    permute,
    rotate,
    separate_heads,
    split,
    subset,
    to_shape,
)
from bgd.scenarios.tasks.types import Samples, in_batches


def everything(samples):
    batches = list(in_batches(samples, 7))
    return torch.cat([b.x for b in batches]), torch.cat([b.y for b in batches])


def test_split_by_hand(data):
    tasks = split(data, [(3, 1), (0, 9)], shared_head=False)
    assert tasks.heads == Heads(4, ((0, 1), (2, 3)))
    x, y = everything(tasks[1].train)
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
    plain, _ = everything(tasks[0].train)
    torch.testing.assert_close(plain, data.train.images / 255)
    one, y = everything(tasks[1].train)
    assert torch.equal(y, data.train.labels)
    assert not torch.equal(one, plain)
    assert torch.equal(one.flatten(1).sort(1).values, plain.flatten(1).sort(1).values)
    order = tasks[1].train.change.order
    torch.testing.assert_close(one.flatten(1), plain.flatten(1)[:, order])


def test_train_and_test_are_permuted_alike(data):
    task = permute(data, 2, shared_head=True)[1]
    assert task.train.change is task.test.change


def test_permutations_depend_on_their_seed_and_place_only(data):
    few, many = (permute(data, n, shared_head=True, seed=5) for n in (3, 6))
    for t in (1, 2):
        assert (few[t].train.change.order == many[t].train.change.order).all()
    assert (few[1].train.change.order != few[2].train.change.order).any()
    other = permute(data, 3, shared_head=True, seed=6)
    assert (few[1].train.change.order != other[1].train.change.order).any()


def test_padding_takes_part_in_the_permutation(data):
    padded = pad(data, 2)
    assert padded.train.images.shape[1:] == (1, 8, 8)
    assert torch.equal(padded.train.images[:, :, 2:-2, 2:-2], data.train.images)
    assert padded.train.images.sum() == data.train.images.sum()
    x, _ = everything(permute(padded, 2, shared_head=True)[1].train)
    assert x[:, :, :2].any()


def test_permuted_heads(data):
    tasks = permute(data, 3, shared_head=False)
    assert tasks.heads == separate_heads([10] * 3)
    assert torch.equal(tasks[2].test.labels, data.test.labels + 20)


def test_images_are_held_once(data):
    tasks = permute(pad(data), 50, shared_head=True)
    assert len({task.train.images.data_ptr() for task in tasks}) == 1
    cut = split(data, 5, shared_head=True)
    assert {task.train.images.data_ptr() for task in cut} == {data.train.images.data_ptr()}


def test_rotate(data):
    tasks = rotate(data, [0, 90], shared_head=True)
    x, _ = everything(tasks[1].test)
    torch.testing.assert_close(x, torch.rot90(data.test.images, 1, (2, 3)) / 255)
    assert tasks[0].train.change is None


def test_mix_brings_data_to_one_shape_with_its_own_statistics(make_data):
    grey = make_data(shape=(1, 4, 4), classes=10, name="grey")
    rgb = make_data(shape=(3, 6, 6), classes=3, name="rgb", seed=9)
    tasks = mix([grey, rgb], shared_head=False)
    assert tasks.shape == (3, 6, 6)
    assert tasks.heads == separate_heads([10, 3])
    for task in tasks:
        x, _ = everything(task.train)
        torch.testing.assert_close(x.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
        torch.testing.assert_close(x.std((0, 2, 3), correction=0), torch.ones(3))
    assert mix([grey, rgb], shared_head=True).heads.outputs == 10


def test_to_shape_centres_and_repeats_channels(data):
    images = to_shape(data, (3, 7, 5)).train.images
    for channel in range(3):
        assert torch.equal(images[:, channel, 1:5, 0:4], data.train.images[:, 0])
    assert images.sum() == 3 * data.train.images.sum()


def test_subset_and_limit(data):
    cut = subset(data, [7, 2])
    assert cut.classes == ("c7", "c2")
    assert torch.equal(cut.train.images[cut.train.labels == 0], data.train.images[data.train.labels == 7])
    assert len(limit(data, train=20).train) == 20
    assert len(limit(data, train=20).test) == len(data.test)


def test_float_images_pass_through(make_data):
    data = make_data(dtype=torch.float32)
    x, _ = everything(permute(data, 2, shared_head=True)[0].train)
    assert torch.equal(x, data.train.images)
    before = data.train.images.clone()
    everything(split(data, 5, shared_head=True, normalise="own")[0].train)
    assert torch.equal(data.train.images, before)


def no_class_three(data):
    keep = data.train.labels != 3
    return DataSet("gap", Part(data.train.images[keep], data.train.labels[keep]), data.test, data.classes)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda d: split(d, [(0, 1), (1, 2)], shared_head=False), "class 1 is in tasks 0 and 1"),
        (lambda d: split(d, [(0, 1), (2, 10)], shared_head=True), r"classes \(2, 10\)"),
        (lambda d: split(d, [(0, 0)], shared_head=True), r"classes \(0, 0\)"),
        (lambda d: split(d, [()], shared_head=True), r"classes \(\)"),
        (lambda d: split(d, [], shared_head=True), "no groups"),
        (lambda d: split(d, 3, shared_head=True), "3 equal groups"),
        (lambda d: split(d, 0, shared_head=True), "0 equal groups"),
        (lambda d: split(no_class_three(d), 5, shared_head=True), "class 3 .*gap has no train sample"),
        (lambda d: permute(no_class_three(d), 2, shared_head=True), "class 3 .*gap has no train sample"),
        (lambda d: subset(no_class_three(d), [3, 4]), "class 3 .*gap has no train sample"),
        (lambda d: permute(d, 0, shared_head=True), "0 tasks"),
        (lambda d: permute(d, 2, shared_head=True, seed=-1), "seed=-1"),
        (lambda d: permute(d, 2, shared_head=True, normalise="mine"), "normalise='mine'"),
        (lambda d: rotate(d, [], shared_head=True), "0 tasks"),
        (lambda d: rotate(d, [float("nan")], shared_head=True), "nan degrees"),
        (lambda d: mix([], shared_head=True), "0 tasks"),
        (lambda d: mix([d], shared_head=True, shape=(1, 3, 4)), r"do not fit into \(1, 3, 4\)"),
        (lambda d: to_shape(to_shape(d, (3, 4, 4)), (1, 4, 4)), "do not fit"),
        (lambda d: subset(d, []), r"classes \(\)"),
        (lambda d: limit(d, train=0), "train=0"),
        (lambda d: pad(d, -1), "pixels=-1"),
    ],
)
def test_bad_input_gets_one_clear_error(data, build, said):
    with pytest.raises(ScenarioError, match=said):
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


def samples(labels, shape=(1, 2, 2)):
    return Samples(torch.zeros(len(labels), *shape, dtype=torch.uint8), torch.tensor(labels))


@pytest.mark.parametrize(
    ("tasks", "heads", "said"),
    [
        ([samples([0, 5])], Heads(2, ((0, 1),)), r"train label 5 is not among its outputs \(0, 1\)"),
        ([samples([0, 1]), samples([1, 2])], separate_heads([2, 2]), r"task 1 .* label 1 is not among"),
        ([samples([0])], separate_heads([1, 1]), "1 tasks but heads for 2"),
        ([samples([0]), samples([1], (3, 2, 2))], separate_heads([1, 1]), r"shape \(3, 2, 2\)"),
    ],
)
def test_tasks_that_do_not_fit_their_heads(tasks, heads, said):
    with pytest.raises(ScenarioError, match=said):
        TaskSet(tuple(Task("t", s, s) for s in tasks), heads)


def test_images_of_several_types_are_refused(make_data):
    with pytest.raises(ScenarioError, match=r"task 1 .*torch.float32 images, task 0 torch.uint8"):
        mix([make_data(), make_data(dtype=torch.float32)], shared_head=True)


def test_a_task_without_samples():
    empty = Samples(torch.zeros(0, 1, 2, 2, dtype=torch.uint8), torch.zeros(0, dtype=torch.int64))
    with pytest.raises(ScenarioError, match="no train samples"):
        TaskSet((Task("t", empty, empty),), Heads(1, ((0,),)))


@pytest.mark.parametrize(
    ("outputs", "tasks", "said"),
    [
        (2, ((0, 2),), r"outputs \(0, 2\)"),
        (2, ((-1,),), r"outputs \(-1,\)"),
        (2, ((0, 0),), r"outputs \(0, 0\)"),
        (2, ((),), r"outputs \(\)"),
        (2, (), "no task"),
        (3, ((0, 1), (1, 2)), "tasks 0 and 1 both use output 1"),
    ],
)
def test_bad_heads(outputs, tasks, said):
    with pytest.raises(ScenarioError, match=said):
        Heads(outputs, tasks)


def test_in_batches_covers_all_in_order(data):
    part = split(data, 5, shared_head=True)[0].test
    y = torch.cat([batch.y for batch in in_batches(part, 3, task=4)])
    assert torch.equal(y, part.labels)
    assert all(batch.task == 4 for batch in in_batches(part, 100, task=4))
    with pytest.raises(ScenarioError, match="size 0"):
        next(in_batches(part, 0))


def test_rows_of_numpy_and_torch_agree(data):
    part = split(data, 5, shared_head=True)[2].train
    assert isinstance(part.rows, np.ndarray)
    assert len(part) == len(part.rows) == len(part.labels)
