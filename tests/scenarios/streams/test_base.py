"""What every stream promises: pure, bounded, and silent about what its scenario does not reveal."""

import gc
import tracemalloc
import types

import numpy as np
import pytest
import torch
from small_data import make_data
from small_streams import AGNOSTIC, CONTINUOUS, as_bytes, every_kind, make_streams

from bgd.scenarios import (
    Batch,
    Continuous,
    Discrete,
    Drifting,
    Joint,
    Knowledge,
    Normalise,
    Samples,
    Scenario,
    ScenarioError,
    Stream,
    Task,
    TaskSet,
    mix,
    permute,
    rotating,
    scenario,
)

BOUNDARIES_ONLY = Scenario("boundaries only", Knowledge.BOUNDARIES, task_in_testing=False, shared_head=True)


@every_kind
def test_a_batch_is_a_function_of_seed_and_iteration(kind):
    forward = [as_bytes(batch) for batch in make_streams()[kind]]
    again = make_streams()[kind]
    assert len(forward) == len(again)
    order = np.random.default_rng(0).permutation(len(again)).tolist()
    assert all(as_bytes(again.batch(i)) == forward[i] for i in order)
    other = [as_bytes(batch) for batch in make_streams(seed=4)[kind]]
    assert sum(a == b for a, b in zip(forward, other, strict=True)) == 0


@every_kind
def test_a_stream_is_resumed_at_any_iteration(kind):
    expected = [as_bytes(batch) for batch in make_streams()[kind]]
    for i in (0, 1, len(expected) // 2, len(expected) - 1):
        assert as_bytes(make_streams()[kind][i]) == expected[i]


@pytest.mark.parametrize("kind", ["discrete permuted", "continuous permuted", "continuous rotated", "joint"])
@pytest.mark.parametrize("cache_bytes", [0, 2000, 4000])
def test_the_image_cache_changes_no_byte(kind, cache_bytes):
    """2000 bytes hold one task's 103 images of 16 bytes, 4000 hold two."""
    plenty, scarce = make_streams()[kind], make_streams(cache_bytes=cache_bytes)[kind]
    order = np.random.default_rng(1).permutation(len(plenty)).tolist()
    assert all(as_bytes(plenty[i]) == as_bytes(scarce[i]) for i in order)
    assert scarce._image_cache.size <= cache_bytes
    assert plenty._image_cache.size > 0


@every_kind
def test_global_generators_are_untouched(kind):
    before_torch, before_numpy = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    stream = make_streams()[kind]
    for batch in stream:
        assert batch.x.isfinite().all()
    for task in range(len(stream.tasks)):
        list(stream.test_batches(task))
    assert torch.equal(before_torch, torch.get_rng_state())
    assert (before_numpy == np.random.get_state()[1]).all()  # noqa: NPY002


@every_kind
def test_memory_does_not_grow(kind):
    stream = make_streams()[kind]
    for batch in stream:
        del batch
    gc.collect()
    tracemalloc.start()
    for i in range(20):
        stream.batch(i)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for i in list(range(len(stream))) * 2:
        stream.batch(i)
    for i in range(20):
        stream.batch(i)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000


def reachable(start: object) -> list[object]:
    """Everything that can be reached from an object, the code and types behind it aside."""
    seen, todo = {}, [start]
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, type | types.ModuleType | types.FunctionType):
            continue
        seen[id(thing)] = thing
        todo += gc.get_referents(thing)
        if isinstance(thing, torch.Tensor):
            todo += [thing._base, thing.grad_fn, thing.untyped_storage(), vars(thing)]
        if isinstance(thing, np.ndarray):
            todo.append(thing.base)
    return list(seen.values())


@every_kind
def test_a_learner_can_reach_nothing_else_from_a_batch(kind):
    stream = make_streams()[kind]
    for batch in stream:
        things = reachable(batch)
        tensors = [thing for thing in things if isinstance(thing, torch.Tensor)]
        given = [value for value in batch if isinstance(value, torch.Tensor)]
        assert {id(t) for t in tensors} == {id(t) for t in given}
        for tensor in tensors:  # no view into anything larger, such as the data set or the next batch
            assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
        plain = (Batch, tuple, dict, torch.Tensor, torch.UntypedStorage, int, str, type(None))
        assert all(isinstance(thing, plain) for thing in things)


@every_kind
def test_changing_a_batch_changes_no_other(kind):
    stream = make_streams()[kind]
    first = as_bytes(stream[0])
    batch = stream[0]
    batch.x.fill_(7)
    batch.y.fill_(0)
    assert as_bytes(stream[0]) == first


@every_kind
def test_a_batch_that_is_kept_stays_as_it_was(kind):
    """A few batches are made at once; they share no memory, with each other or with those requested again."""
    stream, again = make_streams()[kind], make_streams()[kind]
    expected = [as_bytes(again[i]) for i in range(len(again))]
    kept = [stream[i] for i in range(len(stream)) for _ in range(2)]
    for batch, following in zip(kept[::2], kept[1::2], strict=True):
        batch.x.fill_(7)
        batch.y.fill_(0)
        assert batch.x.data_ptr() != following.x.data_ptr()
    assert [as_bytes(batch) for batch in kept[1::2]] == expected


def test_what_each_scenario_reveals(data):
    shared, separate = (permute(data, 2, shared_head=s) for s in (True, False))
    revealed = {}
    for rules in (scenario("task"), scenario("domain"), scenario("class"), AGNOSTIC, BOUNDARIES_ONLY):
        stream = Discrete(shared if rules.shared_head else separate, rules, batch_size=60)
        revealed[rules.name] = (
            [batch.task for batch in stream],
            [stream.reveals_boundary_at(i) for i in range(len(stream))],
            [next(stream.test_batches(t)).task for t in range(2)],
            [next(stream.train_batches(t)).task for t in range(2)],
        )
    ids, ends, never = [0, 0, 1, 1], [False, True, False, True], [False] * 4
    assert revealed["task"] == (ids, ends, [0, 1], [0, 1])
    assert revealed["domain"] == (ids, ends, [None, None], [0, 1])
    assert revealed["class"] == (ids, ends, [None, None], [0, 1])
    assert revealed["boundaries only"] == ([None] * 4, ends, [None, None], [None, None])
    assert revealed["discrete task-agnostic"] == ([None] * 4, never, [None, None], [None, None])


def test_an_iterator_over_one_task_holds_no_stream_and_no_other_task(data):
    stream = Discrete(permute(data, 3, shared_head=True), scenario("domain"))
    batches = stream.train_batches(1)
    next(batches)
    held = reachable(batches.gi_frame.f_locals)
    assert not any(isinstance(thing, Stream | TaskSet | Task) for thing in held)
    assert [thing for thing in held if isinstance(thing, Samples)] == [stream.tasks[1].train]


def test_mixed_batches_of_tasks_with_their_own_normalisation():
    tasks = mix([make_data(name="a"), make_data(name="b", seed=5)], shared_head=True)
    stream = Joint(tasks, scenario("domain"), batch_size=50)
    batch, (_, where) = stream[0], stream.sample(0)
    for b in range(50):
        part = tasks[int(batch.task[b])].train
        torch.testing.assert_close(batch.x[b : b + 1], part.x(part.pixels(where[b : b + 1])))


def test_test_sets_come_whole_in_large_batches(data):
    stream = Discrete(permute(data, 2, shared_head=True), AGNOSTIC)
    (batch,) = stream.test_batches(1)
    assert len(batch.y) == len(data.test)
    assert [len(b.y) for b in stream.test_batches(1, size=30)] == [30, 11]


def test_normalisation_reaches_the_batch(data):
    tasks = permute(data, 2, shared_head=True, normalise=Normalise((0.5,), (0.25,)))
    plain = permute(data, 2, shared_head=True)
    a, b = (Continuous(t, CONTINUOUS, iterations=10, seed=1)[5] for t in (tasks, plain))
    torch.testing.assert_close(a.x, (b.x - 0.5) / 0.25)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda t, d: Discrete(t, AGNOSTIC, epochs=0), "epochs=0"),
        (lambda t, d: Joint(t, AGNOSTIC, epochs=0), "epochs=0"),
        (lambda t, d: Discrete(t, AGNOSTIC, batch_size=0), "batch_size=0"),
        (lambda t, d: Discrete(t, AGNOSTIC, seed=-5), "seed=-5"),
        (lambda t, d: Discrete(t, CONTINUOUS), "Discrete has sharp boundaries.*continuous task-agnostic"),
        (lambda t, d: Continuous(t, AGNOSTIC, iterations=10), "Continuous has no boundaries"),
        (lambda t, d: Discrete(t, scenario("class")), "'class' has shared_head=False"),
        (lambda t, d: Continuous(t, CONTINUOUS, iterations=1), "N=1"),
        (lambda t, d: Continuous(t, CONTINUOUS, iterations=10, beta=0), "beta=0"),
        (lambda t, d: Drifting(rotating(d), CONTINUOUS, iterations=3), "iterations=3"),
        (lambda t, d: Drifting(rotating(d), CONTINUOUS, iterations=30, moments=1), "moments=1"),
        (lambda t, d: rotating(d, 0, float("inf")), "inf degrees"),
    ],
)
def test_invalid_arguments_are_rejected(data, build, message):
    with pytest.raises(ScenarioError, match=message):
        build(permute(data, 2, shared_head=True), data)


@pytest.mark.parametrize("i", [-1, 150])
def test_iterations_out_of_range(i):
    stream = make_streams()["continuous permuted"]
    for method in (stream.batch, stream.reveals_boundary_at, stream.__getitem__):
        with pytest.raises(IndexError, match=f"iteration {i} is out of range"):
            method(i)
