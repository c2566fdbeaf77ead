"""Tasks that fit their heads, and batches over all their samples."""

import numpy as np
import pytest
import torch

from bgd.scenarios import Heads, Samples, ScenarioError, Task, TaskSet, separate_heads, split
from bgd.scenarios.tasks import in_batches


def samples(labels, shape=(1, 2, 2)):
    return Samples(torch.zeros(len(labels), *shape, dtype=torch.uint8), torch.tensor(labels))


@pytest.mark.parametrize(
    ("tasks", "heads", "message"),
    [
        ([samples([0, 5])], Heads(2, ((0, 1),)), r"train label 5 is not among its outputs \(0, 1\)"),
        ([samples([0, 1]), samples([1, 2])], separate_heads([2, 2]), r"task 1 .* label 1 is not among"),
        ([samples([0])], separate_heads([1, 1]), "1 tasks but heads for 2"),
        ([samples([0]), samples([1], (3, 2, 2))], separate_heads([1, 1]), r"shape \(3, 2, 2\)"),
    ],
)
def test_tasks_that_do_not_fit_their_heads(tasks, heads, message):
    with pytest.raises(ScenarioError, match=message):
        TaskSet(tuple(Task("t", s, s) for s in tasks), heads)


def test_a_task_without_samples():
    empty = Samples(torch.zeros(0, 1, 2, 2, dtype=torch.uint8), torch.zeros(0, dtype=torch.int64))
    with pytest.raises(ScenarioError, match="no train samples"):
        TaskSet((Task("t", empty, empty),), Heads(1, ((0,),)))


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
