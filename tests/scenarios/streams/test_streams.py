import gc
import itertools
import tracemalloc
import types

import numpy as np
import pytest
import torch
from scipy import stats

from bgd.scenarios import (
    Batch,
    Continuous,
    DataSet,
    Discrete,
    Drifting,
    Joint,
    Knowledge,
    Normalise,
    Part,
    Samples,
    Scenario,
    ScenarioError,
    Task,
    TaskSet,
    blending,
    mix,
    permute,
    rotate,
    rotating,
    scenario,
    split,
)
from bgd.scenarios.streams import continuous
from bgd.scenarios.streams.base import Stream

AGNOSTIC, CONTINUOUS = scenario("discrete task-agnostic"), scenario("continuous task-agnostic")
BOUNDARIES_ONLY = Scenario("boundaries only", Knowledge.BOUNDARIES, task_in_testing=False, shared_head=True)


def streams(make_data, seed: int = 3, **options) -> dict[str, Stream]:
    """One of every kind, small."""
    data, other = make_data(), make_data(seed=7, name="other")
    permuted = permute(data, 3, shared_head=True)
    turned = rotate(data, [0, 30, 60], shared_head=True)
    return {
        "discrete split": Discrete(
            split(data, 5, shared_head=False), scenario("class"), epochs=2, batch_size=8, seed=seed
        ),
        "discrete float": Discrete(
            permute(make_data(dtype=torch.float32), 2, shared_head=True), AGNOSTIC, epochs=2, batch_size=16, seed=seed
        ),
        "discrete permuted": Discrete(permuted, AGNOSTIC, epochs=3, batch_size=16, seed=seed, **options),
        "continuous permuted": Continuous(permuted, CONTINUOUS, iterations=150, batch_size=16, seed=seed, **options),
        "continuous rotated": Continuous(
            turned, CONTINUOUS, iterations=70, batch_size=16, beta=2.5, seed=seed, **options
        ),
        "joint": Joint(permuted, scenario("domain"), epochs=2, batch_size=16, seed=seed, **options),
        "drifting rotation": Drifting(rotating(data), CONTINUOUS, iterations=70, batch_size=16, seed=seed),
        "drifting blend": Drifting(blending(data, other), CONTINUOUS, iterations=70, batch_size=16, seed=seed),
    }


KINDS = (
    "discrete split",
    "discrete float",
    "discrete permuted",
    "continuous permuted",
    "continuous rotated",
    "joint",
    "drifting rotation",
    "drifting blend",
)
every_kind = pytest.mark.parametrize("kind", KINDS)


def as_bytes(batch: Batch) -> tuple:
    task = batch.task.numpy().tobytes() if isinstance(batch.task, torch.Tensor) else batch.task
    return batch.x.numpy().tobytes(), batch.y.numpy().tobytes(), task


@every_kind
def test_a_batch_is_a_function_of_seed_and_iteration(make_data, kind):
    forward = [as_bytes(batch) for batch in streams(make_data)[kind]]
    again = streams(make_data)[kind]
    assert len(forward) == len(again)
    order = np.random.default_rng(0).permutation(len(again)).tolist()
    assert all(as_bytes(again.batch(i)) == forward[i] for i in order)
    other = [as_bytes(batch) for batch in streams(make_data, seed=4)[kind]]
    assert sum(a == b for a, b in zip(forward, other, strict=True)) == 0


@every_kind
def test_a_stream_is_entered_anywhere(make_data, kind):
    expected = [as_bytes(batch) for batch in streams(make_data)[kind]]
    for i in (0, 1, len(expected) // 2, len(expected) - 1):
        assert as_bytes(streams(make_data)[kind][i]) == expected[i]


@pytest.mark.parametrize("kind", ["discrete permuted", "continuous permuted", "continuous rotated", "joint"])
@pytest.mark.parametrize("memory", [0, 2000, 4000])
def test_what_is_remembered_changes_no_byte(make_data, kind, memory):
    """2000 bytes hold one task's 103 images of 16 bytes, 4000 hold two."""
    plenty, scarce = streams(make_data)[kind], streams(make_data, memory=memory)[kind]
    order = np.random.default_rng(1).permutation(len(plenty)).tolist()
    assert all(as_bytes(plenty[i]) == as_bytes(scarce[i]) for i in order)
    assert scarce._remembered.size <= memory
    assert plenty._remembered.size > 0


@every_kind
def test_global_generators_are_untouched(make_data, kind):
    before_torch, before_numpy = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    stream = streams(make_data)[kind]
    for batch in stream:
        assert batch.x.isfinite().all()
    for task in range(len(stream.tasks)):
        list(stream.test_batches(task))
    assert torch.equal(before_torch, torch.get_rng_state())
    assert (before_numpy == np.random.get_state()[1]).all()  # noqa: NPY002


@every_kind
def test_memory_does_not_grow(make_data, kind):
    stream = streams(make_data)[kind]
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
def test_a_learner_can_reach_nothing_else_from_what_it_is_handed(make_data, kind):
    stream = streams(make_data)[kind]
    for batch in stream:
        things = reachable(batch)
        tensors = [thing for thing in things if isinstance(thing, torch.Tensor)]
        handed = [value for value in batch if isinstance(value, torch.Tensor)]
        assert {id(t) for t in tensors} == {id(t) for t in handed}
        for tensor in tensors:  # no view into anything larger, such as the data set or the next batch
            assert tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
        plain = (Batch, tuple, dict, torch.Tensor, torch.UntypedStorage, int, str, type(None))
        assert all(isinstance(thing, plain) for thing in things)


@every_kind
def test_changing_a_batch_changes_no_other(make_data, kind):
    stream = streams(make_data)[kind]
    first = as_bytes(stream[0])
    batch = stream[0]
    batch.x.fill_(7)
    batch.y.fill_(0)
    assert as_bytes(stream[0]) == first


@every_kind
def test_a_batch_that_is_kept_stays_as_it_was(make_data, kind):
    """A few batches are made at once; they share no memory, with each other or with those asked for again."""
    stream, again = streams(make_data)[kind], streams(make_data)[kind]
    expected = [as_bytes(again[i]) for i in range(len(again))]
    kept = [stream[i] for i in range(len(stream)) for _ in range(2)]
    for batch, following in zip(kept[::2], kept[1::2], strict=True):
        batch.x.fill_(7)
        batch.y.fill_(0)
        assert batch.x.data_ptr() != following.x.data_ptr()
    assert [as_bytes(batch) for batch in kept[1::2]] == expected


def test_what_each_scenario_reveals(data):
    shared, separate = (permute(data, 2, shared_head=s) for s in (True, False))
    told = {}
    for rules in (scenario("task"), scenario("domain"), scenario("class"), AGNOSTIC, BOUNDARIES_ONLY):
        stream = Discrete(shared if rules.shared_head else separate, rules, batch_size=60)
        told[rules.name] = (
            [batch.task for batch in stream],
            [stream.tells_end(i) for i in range(len(stream))],
            [next(stream.test_batches(t)).task for t in range(2)],
            [next(stream.train_batches(t)).task for t in range(2)],
        )
    ids, ends, never = [0, 0, 1, 1], [False, True, False, True], [False] * 4
    assert told["task"] == (ids, ends, [0, 1], [0, 1])
    assert told["domain"] == (ids, ends, [None, None], [0, 1])
    assert told["class"] == (ids, ends, [None, None], [0, 1])
    assert told["boundaries only"] == ([None] * 4, ends, [None, None], [None, None])
    assert told["discrete task-agnostic"] == ([None] * 4, never, [None, None], [None, None])


def test_an_iterator_over_one_task_holds_no_stream_and_no_other_task(data):
    stream = Discrete(permute(data, 3, shared_head=True), scenario("domain"))
    batches = stream.train_batches(1)
    next(batches)
    held = reachable(batches.gi_frame.f_locals)
    assert not any(isinstance(thing, Stream | TaskSet | Task) for thing in held)
    assert [thing for thing in held if isinstance(thing, Samples)] == [stream.tasks[1].train]


def test_discrete_shows_every_sample_once_an_epoch_in_another_order(data):
    tasks = split(data, 5, shared_head=False)
    stream = Discrete(tasks, scenario("class"), epochs=3, batch_size=8)
    drawn = [stream.draw(i) for i in range(len(stream))]
    for t, group in itertools.groupby(drawn, key=lambda pair: pair[0]):
        rows = np.concatenate([where for _, where in group])
        epochs = rows.reshape(3, -1)
        assert (np.sort(epochs, axis=1) == np.arange(len(tasks[t].train))).all()
        assert (epochs[0] != epochs[1]).any()
        assert (epochs[1] != epochs[2]).any()
    sizes = [len(batch.y) for batch in stream][:3]
    n = len(tasks[0].train)
    assert sizes == [8, 8, n - 16]
    assert stream.stages[-1] == len(stream)


def test_batches_hold_the_samples_drawn(data):
    stream = Discrete(permute(data, 3, shared_head=True), AGNOSTIC, epochs=2, batch_size=16)
    for i in (0, 7, 20, 40):
        task, where = stream.draw(i)
        part = stream.tasks[task].train
        expected = data.train.images[where].flatten(1) / 255
        if part.change is not None:
            expected = expected[:, part.change.order]
        torch.testing.assert_close(stream[i].x.flatten(1), expected)
        assert torch.equal(stream[i].y, data.train.labels[where])


def test_mixed_batches_hold_each_sample_of_its_task_in_the_order_drawn(data):
    stream = Continuous(permute(data, 3, shared_head=True), CONTINUOUS, iterations=60, batch_size=32)
    i = next(i for i in range(60) if isinstance(stream.draw(i)[0], np.ndarray))
    tasks, where = stream.draw(i)
    batch = stream[i]
    for b, (t, row) in enumerate(zip(tasks, where, strict=True)):
        part = stream.tasks[t].train
        image = data.train.images[row].flatten() / 255
        expected = image if part.change is None else image[part.change.order]
        torch.testing.assert_close(batch.x[b].flatten(), expected)
        assert batch.y[b] == data.train.labels[row]


def test_mixed_batches_of_tasks_with_their_own_normalisation(make_data):
    tasks = mix([make_data(name="a"), make_data(name="b", seed=5)], shared_head=True)
    stream = Joint(tasks, scenario("domain"), batch_size=50)
    batch, (_, where) = stream[0], stream.draw(0)
    for b in range(50):
        part = tasks[int(batch.task[b])].train
        torch.testing.assert_close(batch.x[b : b + 1], part.x(part.pixels(where[b : b + 1])))


def test_continuous_follows_its_schedule(data):
    """The drawn counts are binomial around the expected ones, and images are uniform, with replacement."""
    stream = Continuous(permute(data, 4, shared_head=True), CONTINUOUS, iterations=2000, batch_size=64)
    iterations = range(len(stream))
    expected, drawn = stream.expected(iterations), stream.drawn(iterations)
    assert (drawn[expected == 0] == 0).all()
    inside = (expected > 0) & (expected < 1)
    z = (drawn - expected)[inside] / np.sqrt((expected * (1 - expected))[inside] / 64)
    assert abs(z.mean()) < 0.1
    assert z.std() == pytest.approx(1, abs=0.05)
    rows = np.concatenate([stream.draw(i)[1] for i in range(300)])
    assert stats.chisquare(np.bincount(rows, minlength=len(data.train))).pvalue > 0.01


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_even_the_rarest_number_draws_a_task_that_is_there(data, monkeypatch, word):
    monkeypatch.setattr(continuous, "random_words", lambda *_: np.full(_[-1], word, dtype=np.uint64))
    stream = Continuous(permute(data, 5, shared_head=True), CONTINUOUS, iterations=100, batch_size=2)
    for i in range(100):
        task, where = stream.draw(i)
        present = np.flatnonzero(stream.expected([i])[0])
        assert task == present[0 if word == 0 else -1]
        assert (where == (0 if word == 0 else len(data.train) - 1)).all()


def test_tasks_of_a_batch_are_in_no_order(data):
    """Sorted tasks would tell a learner where one ends: neighbours must agree as often as strangers do."""
    stream = Continuous(permute(data, 2, shared_head=True), CONTINUOUS, iterations=400, batch_size=64)
    mixed = np.stack([t for i in range(180, 220) if isinstance(t := stream.draw(i)[0], np.ndarray)])
    assert (mixed[:, 1:] == mixed[:, :-1]).mean() == pytest.approx(0.5, abs=0.05)


def test_hard_switches(data):
    stream = Continuous(permute(data, 3, shared_head=True), CONTINUOUS, iterations=30, beta=1)
    assert [stream.draw(i)[0] for i in range(30)] == [0] * 10 + [1] * 10 + [2] * 10
    assert stream.stages == (10, 20, 30)


def test_joint_covers_all_tasks_every_epoch(data):
    stream = Joint(split(data, 5, shared_head=False), scenario("class"), epochs=2, batch_size=10)
    half = len(stream) // 2
    y = torch.cat([stream[i].y for i in range(half)])
    assert torch.equal(y.sort().values, torch.cat([t.train.labels for t in stream.tasks]).sort().values)
    assert all(torch.equal(batch.task, batch.y // 2) for batch in stream)
    np.testing.assert_allclose(stream.expected([0]).sum(), 1)


def test_rotation_drifts_from_start_to_end(data):
    stream = Drifting(rotating(data, 0, 180), CONTINUOUS, iterations=41, moments=3, batch_size=8)
    for i, turns in ((0, 0), (20, 1), (40, 2)):
        _, where = stream.draw(i)
        expected = torch.rot90(data.train.images[where], turns, (2, 3)) / 255
        torch.testing.assert_close(stream[i].x, expected)
    assert [stream.progress(i) for i in (0, 40)] == [0, 1]
    last = next(stream.test_batches(2))
    torch.testing.assert_close(last.x, torch.rot90(data.test.images, 2, (2, 3)) / 255)


def test_blending_drifts_from_one_data_set_to_the_other_class_by_class(make_data):
    data, other = make_data(), make_data(seed=7, name="other", n=57)
    stream = Drifting(blending(data, other, seed=1), CONTINUOUS, iterations=11, batch_size=32)
    assert torch.equal(stream[0].x, next(iter(stream)).x)
    _, where = stream.draw(0)
    torch.testing.assert_close(stream[0].x, data.train.images[where] / 255)
    known = {image.numpy().tobytes(): int(y) for image, y in zip(*_parts(other), strict=True)}
    end = stream[10]
    for image, label in zip((end.x * 255).round().to(torch.uint8), end.y, strict=True):
        assert known[image.numpy().tobytes()] == int(label)


def _parts(data):
    return data.train.images, data.train.labels


def test_moments_of_a_drift_as_shares(data):
    stream = Drifting(rotating(data), CONTINUOUS, iterations=9, moments=3)
    np.testing.assert_allclose(stream.expected(range(9)).sum(axis=1), 1)
    assert stream.expected([0, 4, 8]).tolist() == np.eye(3).tolist()


def test_a_moment_is_measured_when_the_world_leaves_it(data):
    stream = Drifting(rotating(data), CONTINUOUS, iterations=400, moments=5)
    assert stream.stages == (50, 150, 250, 350, 400)
    for moment, stage in enumerate(stream.stages):
        assert stream.draw(stage - 1)[0] == moment
    assert Drifting(rotating(data), CONTINUOUS, iterations=5, moments=5).stages == (1, 2, 3, 4, 5)


def test_plain_features_are_not_turned():
    part = Part(torch.zeros(2, 1, 1, 20), torch.arange(2))
    features = DataSet("features", part, part, ("a", "b"))
    with pytest.raises(ScenarioError, match=r"shape \(1, 1, 20\) cannot be turned, since it is no image: permute it"):
        rotating(features, 0, 90).moments(2)
    with pytest.raises(ScenarioError, match="no image"):
        rotate(features, [0, 30], shared_head=True)


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
    ("build", "said"),
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
def test_bad_input_gets_one_clear_error(data, build, said):
    with pytest.raises(ScenarioError, match=said):
        build(permute(data, 2, shared_head=True), data)


def test_data_that_cannot_be_blended(make_data):
    data = make_data()
    with pytest.raises(ScenarioError, match="one shape"):
        blending(data, make_data(shape=(1, 5, 5)))
    with pytest.raises(ScenarioError, match="as many classes"):
        blending(data, make_data(classes=5))


@pytest.mark.parametrize("i", [-1, 150])
def test_iterations_out_of_range(make_data, i):
    stream = streams(make_data)["continuous permuted"]
    for ask in (stream.batch, stream.tells_end, stream.__getitem__):
        with pytest.raises(IndexError, match=f"iteration {i} is out of range"):
            ask(i)
