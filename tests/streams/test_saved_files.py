"""Files of stream learners that anybody may have written: a sound learner, or one error that names the file."""

import hashlib
import io
import json
import random
import tracemalloc
import zipfile

import numpy as np
import pytest
from attacks import attacks
from mutations import damages, wrong_shapes

from bgd import StreamClassifier, StreamRegressor
from bgd.errors import BGDError
from bgd.streams.drift import DriftAlarm
from bgd.streams.saving import MAGIC
from bgd.streams.watching import Watcher, load_watcher, save_watcher

ROWS = np.random.default_rng(0).normal(size=(40, 3))
RECORDS = [{"a": x, "b": "red" if y > 0 else "blue"} for x, y, _ in ROWS]
LABELS = np.array(["no", "yes"])[(ROWS[:, 0] > 0).astype(int)]
LEARNERS = {
    "classes": (lambda: StreamClassifier(alarms_per=100).partial_fit(ROWS, LABELS), ROWS),
    "records": (lambda: StreamClassifier().partial_fit(RECORDS, LABELS), RECORDS),
    "numbers": (lambda: StreamRegressor().partial_fit(ROWS, ROWS @ [1.0, 2.0, 3.0]), ROWS),
}
BAD = (np.nan, np.inf, 1e300)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    found = {}
    for name, (make, _) in LEARNERS.items():
        found[name] = tmp_path_factory.mktemp("saved") / "a.bgd"
        make().save(found[name])
    return found


def parts_of(path):
    content = path.read_bytes()[len(MAGIC) :].partition(b"\n")[2]
    with np.load(io.BytesIO(content)) as arrays:
        return dict(arrays)


def write(path, arrays, save=np.savez):
    buffer = io.BytesIO()
    save(buffer, **arrays)
    write_content(path, buffer.getvalue())


def write_content(path, content):
    path.write_bytes(MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def mutants(arrays, pick, count):
    """Files with a sound digest: an entry gone, new, or of another shape, type or value; a header of another shape."""
    names = [name for name in arrays if name != "header"]
    for i in range(count):
        name, changed = pick.choice(names), dict(arrays)
        part = arrays[name]
        spoilt = part.astype(float).ravel().copy()
        if spoilt.size:
            spoilt[pick.randrange(spoilt.size)] = pick.choice(BAD)
        new = (
            part[:-1] if part.ndim else part,
            part[None],
            part.astype(np.float16),
            part.astype("U9"),
            spoilt.reshape(part.shape).astype(part.dtype),
            np.zeros(()),
        )
        kind = i % (len(new) + 2)
        if kind < len(new):
            changed[name] = new[kind]
        elif kind == len(new):
            del changed[name]
        else:
            changed["extra"] = part
        yield changed
    for header in wrong_shapes(arrays["header"].tobytes(), pick, count):
        yield arrays | {"header": np.frombuffer(header, dtype=np.uint8)}


def outcome(load, *arguments):
    """What was loaded; None where it was refused in one line that names the file or its folder."""
    try:
        return load(*arguments)
    except BGDError as error:
        message = str(error)
    assert str(arguments[-1]) in message
    assert "\n" not in message
    return None


@pytest.mark.filterwarnings("ignore:invalid value|overflow|divide by zero:RuntimeWarning")
@pytest.mark.parametrize("name", LEARNERS)
def test_every_mutant_is_refused_or_sound(name, files, tmp_path):
    make, rows = LEARNERS[name]
    kind, path, refused = type(make()), tmp_path / "b.bgd", 0
    for mutant in mutants(parts_of(files[name]), random.Random(name), attacks(40)):
        write(path, mutant)
        if (learner := outcome(kind.load, path)) is None:
            refused += 1
            continue
        if name != "records" and learner._mixture.encoder.width is None:
            continue  # says that it has learnt records whose features are called 0, 1, 2, which is sound
        predicted = learner.predict_proba(rows) if name != "numbers" else learner.predict(rows)
        assert np.isfinite(predicted).all()
        learner.save(path)
        kind.load(path)
    assert refused > attacks(40)


def test_damage_is_noticed_by_the_digest(files, tmp_path):
    content, path = files["classes"].read_bytes(), tmp_path / "b.bgd"
    for mutant in damages(content, random.Random(0), attacks(40)):
        if mutant != content:
            path.write_bytes(mutant)
            with pytest.raises(BGDError, match=f"^{path}"):
                StreamClassifier.load(path)


class Trap:
    def __reduce__(self):
        return pytest.fail, ("code of the file was run",)


def test_objects_bombs_and_what_is_no_file_are_refused(files, tmp_path):
    arrays, path = parts_of(files["classes"]), tmp_path / "b.bgd"
    write(path, arrays | {"weights": np.array([Trap()], dtype=object)}, lambda file, **all: np.savez(file, **all))
    with pytest.raises(BGDError, match="is not a learner"):
        StreamClassifier.load(path)
    write(path, arrays | {"weights": np.zeros(10**8)}, np.savez_compressed)  # 800 MB in 1 MB
    tracemalloc.start()
    with pytest.raises(BGDError, match="is packed"):
        StreamClassifier.load(path)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:  # an array that says it is huge
        np.lib.format.write_array_header_1_0(
            head := io.BytesIO(), {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
        )
        archive.writestr("weights.npy", head.getvalue())
    write_content(path, buffer.getvalue())
    for broken in (path, tmp_path, tmp_path / "none.bgd"):
        with pytest.raises(BGDError, match=f"^{broken}"):
            StreamClassifier.load(broken)
    header = json.loads(arrays["header"].tobytes()) | {"outputs": 10**9}
    write(path, arrays | {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)})
    with pytest.raises(BGDError, match="'outputs' is 1000000000"):
        StreamClassifier.load(path)


@pytest.mark.parametrize("name", ["watch.json", "learner"])
def test_every_mutant_of_a_watchers_checkpoint_is_refused_whole_or_sound(name, tmp_path):
    watcher = Watcher("label")
    for row, label in zip(RECORDS, LABELS, strict=True):
        watcher.take(row | {"label": str(label)})
    save_watcher(watcher, tmp_path, 1234)
    path = next(tmp_path.glob(f"{name}*"))
    content, pick = path.read_bytes(), random.Random(name)
    shapes = wrong_shapes(content, pick, attacks(60)) if name == "watch.json" else ()
    for mutant in (*shapes, *damages(content, pick, attacks(20))):
        path.write_bytes(mutant)
        fresh = Watcher("label")
        position = outcome(load_watcher, fresh, tmp_path)
        if position is None:
            assert fresh.counts.lines == fresh.std_alarm.seen == 0, "half loaded"
            assert not hasattr(fresh.estimator, "classes_"), "half loaded"
            continue
        assert position >= 0
        for row in RECORDS[:3]:
            fresh.take(row | {"label": "no"})
        assert 0 < fresh.estimator.drift_ <= 1


def test_every_mutant_of_an_alarms_state_is_refused_whole_or_sound():
    alarm = DriftAlarm(1000, memory=300)
    alarm.update_many(np.random.default_rng(0).exponential(size=400))
    content = json.dumps(alarm.state_dict()).encode()
    for mutant in wrong_shapes(content, random.Random(0), attacks(150)):
        state, other = json.loads(mutant), DriftAlarm(500)
        before = json.dumps(other.state_dict())
        try:
            other.load_state_dict(state)
        except BGDError:
            assert json.dumps(other.state_dict()) == before
            continue
        for value in range(300):
            other.update(float(value % 7))
        assert json.loads(json.dumps(other.state_dict(), allow_nan=False))
