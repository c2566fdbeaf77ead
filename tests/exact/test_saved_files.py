"""Files of exact learners that anybody may have written: a sound learner, or one line that names the file."""

import io
import json
import random
import tracemalloc
import zipfile

import numpy as np
import pytest
import torch
from attacks import attacks
from mutations import damages, wrong_shapes

from bgd.exact.features import Fourier
from bgd.exact.head import ExactError
from bgd.exact.learner import ExactLearner
from bgd.exact.saving import load, save
from bgd.files import pack_arrays, unpack_arrays


def make(seen):
    learner = ExactLearner(lambda shape: Fourier(shape, 10, seed=0), outputs=2, block=16)
    x = torch.randn(seen, 3, generator=torch.Generator().manual_seed(0))
    for i in range(0, seen, 8):
        learner.learn(x[i : i + 8], torch.eye(2)[(x[i : i + 8, 0] > 0).long()])
    return learner, x


def mutants(content, pick, count):
    """Bytes changed; then sound archives: an entry gone, new, of another shape or type, NaN, or another header."""
    yield from damages(content, pick, count)
    arrays = unpack_arrays(content)
    names = [name for name in arrays if name != "header"]
    for i in range(count):
        part, changed = arrays[name := pick.choice(names)], dict(arrays)
        new = (part[None], part.astype("U9"), part.astype(np.float16), np.full_like(part, np.nan), np.zeros(()))
        if i % 7 < len(new):
            changed[name] = new[i % 7]
        elif i % 7 == 5:
            del changed[name]
        else:
            changed["extra"] = part
        yield pack_arrays(changed)
    for header in wrong_shapes(str(arrays["header"]).encode(), pick, count):
        yield pack_arrays(arrays | {"header": np.array(header.decode())})


def refused(learner, path):
    """Whether the file was refused; then in one line, and the learner is as it was."""
    before = bits_of(learner)
    try:
        load(learner, path)
    except ExactError as error:
        message = str(error)
    else:
        return False
    assert message.startswith(str(path))
    assert "\n" not in message
    assert bits_of(learner) == before
    return True


def bits_of(learner):
    torch.save(learner.state_dict(), buffer := io.BytesIO())
    return buffer.getvalue()


def test_every_mutant_is_refused_whole_or_sound(tmp_path):
    (saved, x), count, path = make(40), 0, tmp_path / "learner.npz"
    save(saved, path)
    for mutant in mutants(path.read_bytes(), random.Random(0), attacks(40)):
        path.write_bytes(mutant)
        other, _ = make(24)
        if refused(other, path):
            count += 1
            continue
        other.learn(x[:8], torch.eye(2)[(x[:8, 0] > 0).long()])
        assert torch.isfinite(other.solution().mean(x)).all()
    assert count > 1.5 * attacks(40)


def test_damage_never_passes_for_another_learner(tmp_path):
    (saved, x), path = make(40), tmp_path / "learner.npz"
    save(saved, path)
    for mutant in damages(path.read_bytes(), random.Random(1), attacks(60)):
        path.write_bytes(mutant)
        other, _ = make(24)
        if not refused(other, path):  # a date or a name that nobody reads
            assert torch.equal(other.solution().mean(x), saved.solution().mean(x))


class Trap:
    def __reduce__(self):
        return pytest.fail, ("code of the file was run",)


def test_objects_bombs_and_what_is_no_file_are_refused(tmp_path):
    (saved, _), path = make(40), tmp_path / "learner.npz"
    save(saved, path)
    arrays = unpack_arrays(path.read_bytes())
    np.savez(path, **arrays | {"0": np.array([Trap()], dtype=object)})
    assert refused(saved, path)
    np.savez_compressed(path, **arrays | {"0": np.zeros(10**7)})  # 80 MB in 0.1 MB
    tracemalloc.start()
    assert refused(saved, path)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(path, "w") as archive:  # an array that says it is huge
        archive.writestr("header.npy", head.getvalue())
    assert refused(saved, path)
    path.write_bytes(pack_arrays(arrays | {"header": np.array("[" * 10**5)}))
    assert refused(saved, path)
    path.write_bytes(pack_arrays(arrays | {"header": np.array(json.dumps({"dict": []}))}))
    for broken in (path, tmp_path, tmp_path / "none.npz"):
        assert refused(saved, broken)


def test_members_that_overlap_are_refused(tmp_path):
    content = pack_arrays({"a": np.zeros(10**4), "b": np.zeros(10**4)})
    second = content.rindex(b"PK\x01\x02")  # the second entry of the list points to the first member
    bomb = bytearray(content)
    bomb[second + 20 : second + 28] = 2 * (10**6).to_bytes(4, "little")
    with pytest.raises(ValueError, match="larger than the file"):
        unpack_arrays(bytes(bomb))
    with pytest.raises(TypeError, match="'a' holds objects"):
        pack_arrays({"a": np.array([{}])})
